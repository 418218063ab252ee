//! The pattern of a Grep, compiled.
//!
//! Searching goes line by line unless the pattern itself speaks of line ends: then whole files are searched, and `\n`
//! finds CRLF too. A pattern that is no regular expression is searched literally, and says so.

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::{Class, Hir, HirKind, translate::Translator};

/// Bytes of a pattern: far more than a search needs, little enough to compile at once.
const MAX_BYTES: usize = 8192;

/// Bytes a search holds at once: one line, or all of a file where the pattern spans lines. More than any file that Grep
/// opens has.
const MAX_HELD: usize = 64 << 20;

/// A pattern ready to be searched for.
pub(super) struct Needle {
    pub(super) matcher: RegexMatcher,
    lines: Lines,
    /// What the caller should know of how the pattern was read.
    pub(super) note: Option<String>,
}

/// How a matcher sees line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// Ended by LF or CRLF, which is not part of them.
    Plain,
    /// Ended by LF; CR is a character like others, because the pattern names it.
    KeepCr,
    /// Line ends are characters like others.
    Whole,
}

/// What a pattern says about line ends.
#[derive(Default)]
struct Shape {
    /// Byte ranges of the pattern that are a line feed outside a class.
    line_feeds: Vec<(usize, usize)>,
    spans_lines: bool,
    names_cr: bool,
    negated: bool,
}

impl Needle {
    pub(super) fn compile(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("pattern is empty; say what to look for (Glob lists files)".into());
        }
        if pattern.len() > MAX_BYTES {
            return Err(format!("pattern has {} bytes; at most {MAX_BYTES} can be searched for", pattern.len()));
        }
        match Self::regex(pattern, ignore_case) {
            Ok(needle) => Ok(needle),
            Err(reason) => {
                let mut needle = Self::regex(&regex_syntax::escape(pattern), ignore_case)?;
                needle.note = Some(format!("Not a valid regex ({reason}); searched as plain text."));
                Ok(needle)
            }
        }
    }

    fn regex(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let shape = Shape::of(pattern)?;
        let lines = match (shape.spans_lines, shape.names_cr) {
            (true, _) => Lines::Whole,
            (false, true) => Lines::KeepCr,
            (false, false) => Lines::Plain,
        };
        let text = shape.with_any_line_end(pattern);
        let build = |lines: Lines| {
            let mut builder = RegexMatcherBuilder::new();
            builder.multi_line(true).case_insensitive(ignore_case);
            match lines {
                Lines::Plain => builder.crlf(true),
                Lines::KeepCr => builder.line_terminator(Some(b'\n')),
                Lines::Whole if shape.names_cr => &mut builder,
                Lines::Whole => builder.crlf(true).line_terminator(None),
            };
            builder.build(&text)
        };
        let (matcher, lines) = match build(lines) {
            Ok(matcher) => (matcher, lines),
            // It can match nothing but a line end in some way the syntax tree did not show.
            Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                (build(Lines::Whole).map_err(|e| e.to_string())?, Lines::Whole)
            }
            Err(error) => return Err(error.to_string()),
        };
        Ok(Self { matcher, lines, note: None })
    }

    /// A searcher for this pattern that also reports `context` lines around a match.
    pub(super) fn searcher(&self, context: usize) -> Searcher {
        self.searching(context, true)
    }

    /// A searcher for whoever only counts: it does not number lines.
    pub(super) fn counter(&self) -> Searcher {
        self.searching(0, false)
    }

    fn searching(&self, context: usize, numbers: bool) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(numbers)
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never())
            .heap_limit(Some(MAX_HELD))
            .multi_line(self.lines == Lines::Whole);
        if self.lines == Lines::Plain {
            builder.line_terminator(LineTerminator::crlf());
        }
        builder.build()
    }
}

impl Shape {
    fn of(pattern: &str) -> Result<Self, String> {
        let ast = ast::parse::Parser::new().parse(pattern).map_err(|e| e.kind().to_string())?;
        let hir = Translator::new().translate(pattern, &ast).map_err(|e| e.kind().to_string())?;
        let mut shape = ast::visit(&ast, Self::default()).unwrap_or_else(|never| match never {});
        shape.spans_lines |= has_full_class(&hir);
        Ok(shape)
    }

    /// The pattern with every line feed made to fit CRLF as well, unless it speaks of CR itself.
    fn with_any_line_end(&self, pattern: &str) -> String {
        let mut out = String::with_capacity(pattern.len());
        let mut from = 0;
        for &(start, end) in self.line_feeds.iter().filter(|_| !self.names_cr) {
            out.push_str(&pattern[from..start]);
            out.push_str(r"(?:\r?\n)");
            from = end;
        }
        out.push_str(&pattern[from..]);
        out
    }
}

impl ast::Visitor for Shape {
    type Output = Self;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self, Self::Err> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Literal(literal) if literal.c == '\n' => {
                self.spans_lines = true;
                self.line_feeds.push((literal.span.start.offset, literal.span.end.offset));
            }
            Ast::Literal(literal) if literal.c == '\r' => self.names_cr = true,
            Ast::ClassBracketed(class) => self.negated = class.negated,
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), Self::Err> {
        if let (ast::ClassSetItem::Literal(literal), false) = (item, self.negated) {
            self.spans_lines |= literal.c == '\n';
            self.names_cr |= literal.c == '\r';
        }
        Ok(())
    }
}

/// Whether a part of the pattern fits every character there is, as `[\s\S]` and `(?s:.)` do: whoever writes that
/// wants line ends too. (`\s` and `[^x]` fit them as well, but hardly anybody means it.)
fn has_full_class(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            matches!(class.ranges(), [all] if all.start() == '\0' && all.end() == char::MAX)
        }
        HirKind::Class(Class::Bytes(class)) => matches!(class.ranges(), [all] if all.start() == 0 && all.end() == 255),
        HirKind::Repetition(repetition) => has_full_class(&repetition.sub),
        HirKind::Capture(capture) => has_full_class(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_full_class),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Look(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;

    use super::*;

    fn lines(pattern: &str) -> Lines {
        Needle::compile(pattern, false).unwrap().lines
    }

    fn fits(pattern: &str, text: &str) -> bool {
        Needle::compile(pattern, false).unwrap().matcher.is_match(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_patterns_that_speak_of_line_ends_search_whole_files() {
        for pattern in ["a", r"a\s+b", "[^x]*", r"[^\n]*", ".*", r"\D", "^$", r"a\\n"] {
            assert!(lines(pattern) == Lines::Plain, "{pattern}");
        }
        for pattern in [r"a\nb", "a\nb", r"[\s\S]*", "(?s)a.b", r"a[ \n]b", r"\x0A", r"(a|\n)", r"\r\n"] {
            assert!(lines(pattern) == Lines::Whole, "{pattern}");
        }
        assert!(lines(r"\r$") == Lines::KeepCr);
    }

    #[test]
    fn a_line_feed_fits_both_kinds_of_line_end() {
        for pattern in [r"a\nb", r"a$\nb", r"a\n+b", "a\nb", r"a[\s\S]*b", r"a\x0ab"] {
            assert!(fits(pattern, "a\nb"), "{pattern}");
            assert!(fits(pattern, "a\r\nb"), "{pattern}");
        }
        assert!(fits(r"a\r\nb", "a\r\nb"));
        assert!(!fits(r"a\r\nb", "a\nb"));
    }

    #[test]
    fn what_is_no_regex_is_searched_literally_and_says_so() {
        for pattern in ["->name(", "a[", "*x", "(?<=a)b", r"\q", "a{2,1}", "x)", "[z-a]", "(a\nb"] {
            let needle = Needle::compile(pattern, false).unwrap();
            assert!(needle.note.as_deref().unwrap().starts_with("Not a valid regex ("), "{pattern}");
            assert!(needle.matcher.is_match(pattern.as_bytes()).unwrap(), "{pattern}");
        }
        assert!(Needle::compile(r"->name\(", false).unwrap().note.is_none());
    }

    #[test]
    fn a_pattern_too_large_to_compile_is_an_error_or_searched_literally() {
        assert!(Needle::compile(&"a".repeat(MAX_BYTES + 1), false).is_err());
        assert!(Needle::compile("", false).is_err());
        assert!(Needle::compile(r"\w{900}{9}", false).unwrap().note.is_some());
        assert!(Needle::compile(&"(".repeat(4000), false).unwrap().note.is_some());
    }
}
