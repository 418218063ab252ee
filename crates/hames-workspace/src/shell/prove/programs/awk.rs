//! `awk`: programs that compute and print, and neither write files nor run commands.
//!
//! Most programs hold none of the words and signs by which awk does more than that, wherever they stand. Only for the
//! others is it told strings, patterns and code apart, and that only where all awks tell them apart alike.

use super::super::judge::{Judge, Judged};
use super::super::options::Options;
use super::Call;

const OPTIONS: Options = Options {
    allowed: "-F: --field-separator: -v: --assign:",
    refused: &[
        ("-f --file -i --include -l --load -e --source -E --exec", "the program stands elsewhere and is not looked at"),
        ("-o --pretty-print -p --profile -d --dump-variables", "it writes a file"),
        ("-W", "it has forms that run or write something"),
        ("-D --debug", "its debugger can run commands"),
    ],
    stop: true,
};

pub(in super::super) fn awk(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let parsed = OPTIONS.parse(call.name, call.args)?;
    let Some(program) = call.args.get(parsed.used).and_then(|program| program.known()) else {
        return Err(call.refusal(
            "",
            "its program is not known beforehand",
            "Write it in single quotes, and hand values in by -v.",
        ));
    };
    match check(program) {
        Ok(()) => Ok(()),
        Err(why) => {
            Err(call.refusal(&format!("'{program}'"), why, "Print to the output only, without pipes and system()."))
        }
    }
}

fn check(program: &str) -> Result<(), &'static str> {
    if program.contains("\\\n") {
        return Err("a line joined by a backslash is not followed");
    }
    if program.contains("system") {
        return Err("system() runs a command");
    }
    if program.contains("getline") {
        return Err("getline may read from a command");
    }
    if !program.contains(['>', '|', '@']) {
        return Ok(());
    }
    let mut code = Code { rest: program, before: Before::Start, printing: false };
    while !code.rest.is_empty() {
        code.step()?;
    }
    Ok(())
}

/// What stands before a slash: whether it begins a pattern or divides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Start,
    /// A number, a string, a variable: it divides.
    Value,
    /// Both are possible, or not all awks agree.
    Unclear,
}

/// What is left of a program.
struct Code<'a> {
    rest: &'a str,
    before: Before,
    /// Inside `print` or `printf`, where `>` writes.
    printing: bool,
}

const UNCLEAR: &str = "strings and patterns in it cannot be told apart for certain";

impl Code<'_> {
    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn step(&mut self) -> Result<(), &'static str> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(());
        };
        let second = self.rest.as_bytes().get(1).copied();
        match first {
            ' ' | '\t' => self.skip(1),
            '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
            '"' => self.string()?,
            '/' => match self.before {
                Before::Start => self.pattern()?,
                Before::Value => {
                    self.skip(1);
                    self.before = Before::Start;
                }
                Before::Unclear => return Err(UNCLEAR),
            },
            c if c.is_ascii_alphabetic() || c == '_' => self.word(),
            c if c.is_ascii_digit() || c == '.' => {
                self.skip(self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'.').count());
                self.before = Before::Value;
            }
            '@' => return Err("@ loads or calls something that is not known beforehand"),
            '|' if second == Some(b'|') => {
                self.skip(2);
                self.before = Before::Start;
            }
            '|' => return Err("a pipe runs a command"),
            '>' if second == Some(b'>') || self.printing => return Err("> behind print writes into a file"),
            // Behind a comma a line end does not end what is printed.
            '\n' => {
                self.skip(1);
                self.before = Before::Start;
            }
            ';' | '}' | '{' => {
                self.skip(1);
                (self.printing, self.before) = (false, Before::Start);
            }
            ')' | '+' | '-' => {
                // `)` may end a condition, and `++` stand before or behind a variable.
                let doubled = first != ')' && second == Some(first as u8);
                self.skip(if doubled { 2 } else { 1 });
                self.before = if doubled || first == ')' { Before::Unclear } else { Before::Start };
            }
            ']' => {
                self.skip(1);
                self.before = Before::Value;
            }
            '(' | '[' | '>' | '<' | '=' | '!' | '~' | '&' | ',' | '*' | '%' | '^' | '?' | ':' | '$' => {
                self.skip(1);
                self.before = Before::Start;
            }
            _ => return Err(UNCLEAR),
        }
        Ok(())
    }

    fn word(&mut self) {
        let length = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let word = &self.rest[..length];
        self.before = match word {
            "print" | "printf" => {
                self.printing = true;
                Before::Start
            }
            "if" | "else" | "while" | "for" | "do" | "return" | "in" | "exit" | "next" | "BEGIN" | "END" | "delete"
            | "case" => Before::Start,
            "length" | "func" | "function" | "switch" | "default" | "nextfile" => Before::Unclear,
            _ => Before::Value,
        };
        self.skip(length);
    }

    fn string(&mut self) -> Result<(), &'static str> {
        let length = closed(&self.rest[1..], '"').ok_or(UNCLEAR)?;
        self.skip(length + 2);
        self.before = Before::Value;
        Ok(())
    }

    /// A pattern. Whether a slash in brackets ends it is read in two ways, so there must be none.
    fn pattern(&mut self) -> Result<(), &'static str> {
        let length = closed(&self.rest[1..], '/').ok_or(UNCLEAR)?;
        let inside = &self.rest[1..=length];
        if inside.matches('[').count() != inside.matches(']').count() {
            return Err(UNCLEAR);
        }
        self.skip(length + 2);
        self.before = Before::Value;
        Ok(())
    }
}

/// Bytes up to a closing sign that no backslash stands before, on the same line.
fn closed(text: &str, sign: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == sign => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn programs_that_only_print_are_read() {
        for program in [
            "{print $1}",
            "NR>1{print $2}",
            "/re/{n++} END{print n}",
            "{s+=$1} END{print s/NR}",
            "$3 > 5 {print $1}",
            "/a|b/{print}",
            "BEGIN{FS=\"|\"} {print $2}",
            "length($0) > 80",
            "NR==FNR{a[$1]=1;next} $1 in a",
            "{printf \"%s\\n\", $1}",
            "!seen[$0]++",
            "{ if ($1 > 2) print $1; else print \"no\" }",
            "$1 == \"a\" || $2 > 3",
            "/@/{print $1}",
            "{gsub(/a/,\"b\"); print}",
            "END{print NR}",
            "{print $NF}",
            "NR%2",
            "{print length}",
            "$2 ~ /x|y/",
            "BEGIN{x=4/2} NR>x",
            "# a > b\n{print}",
            "",
            "{a[$1]+=$2} END{for(k in a) print k, a[k]}",
            "{print ($1+$2)/2}",
            "$0 >= 5 && !/x/",
        ] {
            assert_eq!(check(program), Ok(()), "{program}");
        }
    }

    #[test]
    fn programs_that_write_run_or_are_unclear_are_refused() {
        for program in [
            "BEGIN{print 1>\"out\"}",
            "BEGIN{system(\"touch o\")}",
            "{print > $1}",
            "{print >> \"out\"}",
            "{print | \"sh\"}",
            "BEGIN{\"date\" | getline x}",
            "{getline < \"f\"}",
            "{printf \"x\" > \"out\"}",
            "BEGIN{print \"x\">\"o\"; close(\"o\")}",
            "@load \"x\"",
            "@include \"x\"",
            "BEGIN{f=\"x\"; @f()}",
            "{print $1 > \"a\" \"b\"}",
            "BEGIN { print \"x\" |& \"sh\" }",
            "{print(1)(2) > \"o\"}",
            "{print (1) > \"o\"}",
            "if (x) /\"/ > 1 {print \"\" > \"o\"}",
            "{ x = y++ /\"/ > \"z\" }",
            "/[/]/ {print \"/\" > \"o\"}",
            "/\"/{print 1 > \"o\"} #\"",
            "{print \"a\" \"b\" > \"c\"}",
            "{print $1\n} {print 2 > \"o\"}",
            "BEGIN{sys\\\ntem(\"x\")}",
            "{print \"unclosed > o}",
            "length /x/ > 3",
            "{print -1 > \"o\"}",
            "{print a[1] > \"o\"}",
            "$1 | $2",
            "{print/\"/ > \"o\"}",
            "{ print \"x\" > /dev/tcp/x }",
            "BEGIN { printf(\"%s\", \"x\") > \"o\" }",
            "{print>FILENAME\".x\"}",
        ] {
            assert!(check(program).is_err(), "{program}");
        }
    }
}
