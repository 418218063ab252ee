//! Path patterns: globs that know that brackets and braces are also plain characters of file names.
//!
//! `app/[id]/*` is a class to a glob and a folder to a web framework. Nothing in the text tells which is meant, but
//! the tree does: a pattern has several *readings*, from the most literal to the plain glob, and the first one that
//! any path fits is the one that counts.

use globset::{GlobBuilder, GlobMatcher};

/// Bytes of a pattern: far more than a path has, little enough to compile at once.
const MAX_BYTES: usize = 4096;

/// A compiled pattern, matched against paths relative to where the search starts.
pub(super) struct PathPattern {
    readings: Vec<GlobMatcher>,
    /// Why the pattern is no glob, where only literal readings of it are left.
    problem: Option<String>,
    levels: Option<usize>,
}

impl PathPattern {
    /// Compiles `components`. A single `floating` component fits names at any depth.
    pub(super) fn new(components: &[String], floating: bool) -> Result<Self, String> {
        let text = components.join("/");
        if text.len() > MAX_BYTES {
            return Err(format!("the pattern has {} bytes; at most {MAX_BYTES} can be used", text.len()));
        }
        let fixed = !floating && !components.iter().any(|part| part.contains("**") || part.contains('/'));
        let levels = fixed.then_some(components.len());
        let prefix = if floating && components.len() == 1 { "**/" } else { "" };
        let mut spellings = vec![quote(&text, "[]{}"), quote(&text, "[]"), text];
        spellings.dedup();
        let mut readings = Vec::new();
        let mut problem = None;
        for spelling in spellings {
            match compile(&format!("{prefix}{spelling}")) {
                Ok(matcher) => readings.push(matcher),
                Err(reason) => problem = Some(reason),
            }
        }
        match problem {
            Some(reason) if readings.is_empty() => Err(reason),
            problem => Ok(Self { readings, problem, levels }),
        }
    }

    /// The most literal reading that `path` fits; smaller is more literal.
    pub(super) fn reading_of(&self, path: &str) -> Option<usize> {
        self.readings.iter().position(|reading| reading.is_match(path))
    }

    /// How many names a path has that fits, where all that fit have the same number.
    pub(super) fn levels(&self) -> Option<usize> {
        self.levels
    }

    /// Why the pattern is no glob, if it is none.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

fn compile(glob: &str) -> Result<GlobMatcher, String> {
    let built = GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .allow_unclosed_class(true)
        .build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

/// A filter of a search: patterns of which one must fit and none of the negated ones may.
pub(super) struct Filter {
    any_of: Vec<PathPattern>,
    none_of: Vec<PathPattern>,
}

impl Filter {
    /// Reads a filter: a glob, or several separated by commas outside braces; `!` before one excludes what fits it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self { any_of: Vec::new(), none_of: Vec::new() };
        for part in split(text, ',').iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
            let (list, glob) = match part.strip_prefix('!') {
                Some(rest) => (&mut filter.none_of, rest),
                None => (&mut filter.any_of, part),
            };
            let mut pattern = Written::parse(glob);
            if pattern.dirs_only {
                pattern.components.push("**".into());
            }
            list.push(PathPattern::new(&pattern.components, pattern.floating)?);
        }
        Ok(filter)
    }

    /// The most literal reading under which `path` passes.
    pub(super) fn reading_of(&self, path: &str) -> Option<usize> {
        if self.none_of.iter().any(|pattern| pattern.reading_of(path).is_some()) {
            return None;
        }
        if self.any_of.is_empty() {
            return Some(0);
        }
        self.any_of.iter().filter_map(|pattern| pattern.reading_of(path)).min()
    }
}

/// A pattern as written, taken apart.
pub(super) struct Written {
    /// Between the slashes; neither empty ones nor `.` are kept.
    pub(super) components: Vec<String>,
    /// Begins with a slash.
    pub(super) absolute: bool,
    /// Ends with a slash: means folders.
    pub(super) dirs_only: bool,
    /// A bare name: it fits at any depth, as in an ignore file.
    pub(super) floating: bool,
}

impl Written {
    pub(super) fn parse(pattern: &str) -> Self {
        let raw = split(pattern, '/');
        let components: Vec<String> =
            raw.iter().filter(|part| !part.is_empty() && **part != ".").map(|part| (*part).to_owned()).collect();
        let absolute = pattern.starts_with('/');
        let dirs_only = pattern.ends_with('/');
        let floating = components.len() == 1 && raw.len() == 1 + usize::from(dirs_only);
        Self { components, absolute, dirs_only, floating }
    }
}

/// Splits at `separator` where it stands outside braces and is not escaped.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut depth, mut escaped) = (0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if c == separator && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    // A brace that never closes is a plain character, and so are the separators behind it.
    if depth > 0 {
        return text.split(separator).collect();
    }
    parts.push(&text[from..]);
    parts
}

/// Whether a component fits only itself.
pub(super) fn is_literal(component: &str) -> bool {
    !component.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// The component that fits exactly `name`.
pub(super) fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if "*?[]{}\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The name that an escaped component without live wildcards fits.
pub(super) fn unescape(component: &str) -> Option<String> {
    let mut out = String::with_capacity(component.len());
    let mut chars = component.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?),
            '*' | '?' | '[' | ']' | '{' | '}' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

/// Makes live `chars` of a pattern plain ones.
fn quote(pattern: &str, chars: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut escaped = false;
    for c in pattern.chars() {
        if !escaped && chars.contains(c) {
            out.push('\\');
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(pattern: &str, path: &str) -> Option<usize> {
        let written = Written::parse(pattern);
        PathPattern::new(&written.components, written.floating).unwrap().reading_of(path)
    }

    #[test]
    fn brackets_fit_the_name_and_the_class() {
        assert_eq!(reading("app/[id]/page.tsx", "app/[id]/page.tsx"), Some(0));
        assert_eq!(reading("app/[id]/page.tsx", "app/i/page.tsx"), Some(1));
        assert_eq!(reading(r"app/\[id\]/*", "app/[id]/page.tsx"), Some(0));
        assert_eq!(reading(r"app/\[id\]/*", "app/i/page.tsx"), None);
        assert_eq!(reading("{a,b}/[id].ts", "b/[id].ts"), Some(1));
        assert_eq!(reading("{a,b}/[id].ts", "{a,b}/[id].ts"), Some(0));
        assert_eq!(reading("[id", "[id"), Some(0));
    }

    #[test]
    fn a_bare_name_fits_at_any_depth_and_a_path_only_where_it_says() {
        assert_eq!(reading("*.js", "a.js"), Some(0));
        assert_eq!(reading("*.js", "src/deep/a.js"), Some(0));
        assert_eq!(reading("./*.js", "src/a.js"), None);
        assert_eq!(reading("src/*.js", "src/deep/a.js"), None);
        assert_eq!(reading("src/**/*.js", "src/a.js"), Some(0));
    }

    #[test]
    fn a_filter_takes_several_globs_and_exclusions() {
        let filter = Filter::parse("*.{ts,tsx}, !*.test.ts").unwrap();
        assert!(filter.reading_of("a/b.tsx").is_some());
        assert!(filter.reading_of("a/b.ts").is_some());
        assert!(filter.reading_of("a/b.test.ts").is_none());
        assert!(filter.reading_of("a/b.js").is_none());
        assert!(Filter::parse("src/").unwrap().reading_of("src/a/b").is_some());
    }

    #[test]
    fn a_slash_inside_braces_is_not_a_border() {
        assert_eq!(Written::parse("{a/b,c}/d").components, ["{a/b,c}", "d"]);
        assert_eq!(Written::parse("{a/b").components, ["{a", "b"]);
        assert_eq!(reading("{a/b,c}/d", "a/b/d"), Some(1));
    }

    #[test]
    fn escaping_is_undone_by_unescaping() {
        for name in ["[id]", "a*b", r"back\slash", "{x,y}", "plain", "é?"] {
            assert_eq!(unescape(&escape(name)).as_deref(), Some(name));
            assert_eq!(reading(&format!("./{}", escape(name)), name), Some(0));
        }
        assert_eq!(unescape("a*"), None);
        assert_eq!(unescape("end\\"), None);
    }
}
