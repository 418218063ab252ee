//! `sed`: a script of commands that only print and change what is printed.

use super::super::judge::{Judge, Judged};
use super::super::options::Options;
use super::Call;

const OPTIONS: Options = Options {
    allowed: "-n --quiet --silent -E -r --regexp-extended -e: --expression: -u --unbuffered -z --null-data --line-length: --posix \
              --sandbox --debug --version",
    refused: &[
        ("-i --in-place", "it changes files in place"),
        ("-f --file", "the script stands in a file that is not looked at"),
        ("-s --separate", "it is there for changing files in place"),
    ],
    stop: false,
};

pub(in super::super) fn sed(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let parsed = OPTIONS.parse(call.name, call.args)?;
    let given = parsed.given.iter().filter(|(option, _)| matches!(*option, "-e" | "--expression"));
    let mut scripts: Vec<Option<String>> = given.map(|(_, value)| value.clone()).collect();
    if scripts.is_empty() && !parsed.has(&["--version"]) {
        scripts.push(parsed.operands.first().and_then(|script| script.known()).map(str::to_owned));
    }
    // Several are joined by line ends.
    let Some(script) = scripts.into_iter().collect::<Option<Vec<_>>>().map(|scripts| scripts.join("\n")) else {
        return Err(call.refusal("", "its script is not known beforehand", "Write the script in single quotes."));
    };
    match (Script { rest: &script }).read() {
        Ok(()) => Ok(()),
        Err(why) => Err(call.refusal(&format!("'{script}'"), why, "Use commands that only print: p, d, s///, q, =.")),
    }
}

/// What is left of a script.
struct Script<'a> {
    rest: &'a str,
}

type Read = Result<(), &'static str>;

const UNKNOWN: &str = "its script is not followed";
const WRITES: &str = "w writes into a file";
const RUNS: &str = "e runs a command";

impl<'a> Script<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn skip(&mut self, which: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(which);
    }

    fn read(&mut self) -> Read {
        loop {
            self.skip(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '}'));
            if self.rest.is_empty() {
                return Ok(());
            }
            if self.peek() == Some('#') {
                self.skip_line();
                continue;
            }
            self.addresses()?;
            self.skip(|c| matches!(c, ' ' | '\t' | '!'));
            self.command()?;
        }
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]);
    }

    fn addresses(&mut self) -> Read {
        if !self.address()? {
            return Ok(());
        }
        self.skip(|c| matches!(c, ' ' | '\t'));
        if self.peek() != Some(',') {
            return Ok(());
        }
        self.take();
        self.skip(|c| matches!(c, ' ' | '\t'));
        if matches!(self.peek(), Some('+' | '~')) {
            self.take();
            return if self.number() { Ok(()) } else { Err(UNKNOWN) };
        }
        if self.address()? { Ok(()) } else { Err(UNKNOWN) }
    }

    fn number(&mut self) -> bool {
        let before = self.rest.len();
        self.skip(|c| c.is_ascii_digit());
        self.rest.len() < before
    }

    fn address(&mut self) -> Result<bool, &'static str> {
        match self.peek() {
            Some('$') => {
                self.take();
            }
            Some(c) if c.is_ascii_digit() => {
                self.number();
                if self.peek() == Some('~') {
                    self.take();
                    self.number();
                }
            }
            Some('/') => {
                self.take();
                self.delimited('/')?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                self.take();
                let delimiter = self.delimiter()?;
                self.delimited(delimiter)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A character that stands on both sides of an expression: one that cannot be taken for anything else.
    fn delimiter(&mut self) -> Result<char, &'static str> {
        self.take()
            .filter(|c| c.is_ascii_punctuation() && !matches!(c, '\\' | '[' | ']' | ';' | '{' | '}'))
            .ok_or(UNKNOWN)
    }

    /// Up to a delimiter. Whether one inside brackets counts is read in two ways, so there must be none.
    fn delimited(&mut self, delimiter: char) -> Read {
        let mut in_brackets = false;
        let mut first = false;
        loop {
            let c = self.take().ok_or(UNKNOWN)?;
            match c {
                '\n' => return Err(UNKNOWN),
                '\\' if self.take().is_none_or(|c| c == '\n') => return Err(UNKNOWN),
                '\\' => {}
                c if c == delimiter => return if in_brackets { Err(UNKNOWN) } else { Ok(()) },
                '[' if !in_brackets => {
                    (in_brackets, first) = (true, true);
                    if self.peek() == Some('^') {
                        self.take();
                    }
                    continue;
                }
                ']' if in_brackets && !first => in_brackets = false,
                _ => {}
            }
            first = false;
        }
    }

    /// The text between the second and third delimiter: anything, with line ends behind a backslash.
    fn replacement(&mut self, delimiter: char) -> Read {
        loop {
            match self.take().ok_or(UNKNOWN)? {
                '\\' => {
                    self.take().ok_or(UNKNOWN)?;
                }
                '\n' => return Err(UNKNOWN),
                c if c == delimiter => return Ok(()),
                _ => {}
            }
        }
    }

    fn command(&mut self) -> Read {
        match self.take().ok_or(UNKNOWN)? {
            '{' => Ok(()),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => self.end(),
            'l' | 'q' | 'Q' => {
                self.skip(|c| matches!(c, ' ' | '\t'));
                self.number();
                self.end()
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip(|c| matches!(c, ' ' | '\t'));
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
                self.end()
            }
            's' => {
                let delimiter = self.delimiter()?;
                self.delimited(delimiter)?;
                self.replacement(delimiter)?;
                self.flags()
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.replacement(delimiter)?;
                self.replacement(delimiter)?;
                self.end()
            }
            'a' | 'i' | 'c' => self.text(),
            'w' | 'W' => Err(WRITES),
            'e' => Err(RUNS),
            'r' | 'R' => Err("r reads a file that is not looked at"),
            _ => Err(UNKNOWN),
        }
    }

    fn flags(&mut self) -> Read {
        self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit());
        match self.peek() {
            Some('w') => Err(WRITES),
            Some('e') => Err(RUNS),
            _ => self.end(),
        }
    }

    /// Lines that are printed: on the rest of this one, or on the next behind a backslash.
    fn text(&mut self) -> Read {
        self.skip(|c| matches!(c, ' ' | '\t'));
        if let Some(rest) = self.rest.strip_prefix("\\\n") {
            self.rest = rest;
        }
        let line = &self.rest[..self.rest.find('\n').unwrap_or(self.rest.len())];
        if line.contains('\\') || line.is_empty() {
            return Err(UNKNOWN);
        }
        self.rest = &self.rest[line.len()..];
        Ok(())
    }

    /// A command has ended.
    fn end(&mut self) -> Read {
        self.skip(|c| matches!(c, ' ' | '\t'));
        match self.peek() {
            None | Some('\n' | ';' | '}' | '#') => Ok(()),
            Some(_) => Err(UNKNOWN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Script;

    #[test]
    fn scripts_that_only_print_are_read() {
        for script in [
            "1,20p",
            "5q",
            "$p",
            "10,$d",
            "/re/p",
            "/a/,/b/p",
            "/a/,+3p",
            "0~2d",
            "s/a/b/",
            "s/a/b/g",
            "s|/x|/y|gp",
            "s/a/b/2I",
            "1p;3p",
            "5p;10q",
            "{p;p}",
            "/x/{s/a/b/;p}",
            "$!N;P;D",
            ":a;N;$!ba;s/\\n/ /g",
            "y/abc/xyz/",
            "=",
            "/^#/d",
            "s/[^ ]*//",
            "s/\\/x/y/",
            "a text to add",
            "i\\\ntext",
            "1!G;h;$!d",
            "s,a,b,",
            "\\,x,d",
            "s/w/e/",
            "/[a-z]/p",
            "s/\\(a\\)/\\1/",
            "",
            "1~3p",
            "/x/I,/y/Mp",
            "# w file",
            "s#a#b#;s/c/d/",
            "$ !d",
            "/a/ , /b/ p",
            "l 5",
            "q5",
            "n;d",
            "s/[]]/x/",
            "s/[^]]/x/",
        ] {
            assert_eq!(Script { rest: script }.read(), Ok(()), "{script}");
        }
    }

    #[test]
    fn scripts_that_write_run_or_are_odd_are_refused() {
        for script in [
            "w out",
            "1w out",
            "/x/w out",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/pw out",
            "W out",
            "e",
            "e touch x",
            "1e touch x",
            "s/a/b/e",
            "s/a/b/ge",
            "s/x/touch y/e",
            "r /etc/passwd",
            "R x",
            "p;w out",
            "p\nw out",
            "{w out\n}",
            "p}w out",
            "!w out",
            "$!{w out\n}",
            "s/[/]/x/w out",
            "s/[/w out]/x/",
            "a\\\nx\\\nw out",
            "y/a/b/w out",
            "s;a;b;w out",
            "sxaxbxw out",
            "s/a\nb/c/",
            "s/a/b",
            "/x",
            "s/a/b/q",
            "v",
            "1,p",
            "pw out",
            "p w out",
            ":a w out",
            "b a;w out",
            "bx\nw out",
            "# x\nw out",
            "s\\a\\b\\",
            "s a b w",
            "\\[x[w out",
            "s/a/b/ w out",
            "s/a/b/;e",
            "s/a/b/;;w x",
            "5!e ls",
            "s/[^]/]/x/w o",
            "c\\\n",
            "M",
            "s/a/b/m w",
        ] {
            assert!(Script { rest: script }.read().is_err(), "{script}");
        }
    }
}
