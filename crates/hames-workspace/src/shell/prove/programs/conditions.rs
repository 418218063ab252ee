//! `test`, `[ … ]` and `[[ … ]]`.
//!
//! Most of their operators only look, but `-v` and the numeric ones of `[[` evaluate array subscripts, and a subscript
//! can run a command. So what stands where an operator could stand has to be known.

use super::super::Refusal;
use super::super::judge::{Judge, Judged};
use super::super::syntax::{Piece, Span, Word};
use super::super::value::Arg;
use super::{Call, assign};

/// Operators before their one operand.
const UNARY: &str = "-a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S";

/// Operators between strings or files.
const BINARY: &str = "= == != < > -nt -ot -ef";

/// Operators between numbers.
const NUMERIC: &str = "-eq -ne -lt -le -gt -ge";

fn listed(operators: &str, operator: &str) -> bool {
    operators.split(' ').any(|listed| listed == operator)
}

/// `test` and `[`.
pub(in super::super) fn test(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let args = match (call.name, call.args) {
        ("[", [args @ .., last]) if last.known() == Some("]") => args,
        ("[", _) => return Err(call.refusal("", "its closing bracket is missing", "End it with ].")),
        (_, args) => args,
    };
    if let Some(arg) = args.iter().find(|arg| !arg.value.is_single()) {
        let why = "without quotes this may become several words, operators among them";
        return Err(call.refusal(arg.value.beginning(), why, "Quote it."));
    }
    match judged_terms(args) {
        true => Ok(()),
        false => {
            Err(call.refusal("", "this condition is not followed", "Use [ A = B ], [ -f A ] and && between brackets."))
        }
    }
}

fn judged_terms(args: &[Arg]) -> bool {
    if is_term(args) {
        return true;
    }
    // Longer ones are read by rules of precedence: only where every word is known.
    args.iter().all(|arg| arg.known().is_some_and(|word| !matches!(word, "(" | ")")))
        && args.split(|arg| matches!(arg.known(), Some("-a" | "-o"))).all(|term| !term.is_empty() && is_term(term))
}

/// One comparison, with as many `!` before it as one likes.
fn is_term(args: &[Arg]) -> bool {
    match args {
        [] | [_] => true,
        [not, rest @ ..] if not.known() == Some("!") && rest.len() <= 3 => is_term(rest),
        [operator, operand] => match operator.known() {
            Some("-v") => operand.known().is_some_and(assign::is_plain),
            Some(operator) => listed(UNARY, operator),
            None => false,
        },
        [_, operator, _] => {
            operator.known().is_some_and(|operator| [BINARY, NUMERIC, "-a -o"].iter().any(|all| listed(all, operator)))
        }
        _ => false,
    }
}

impl Judge<'_> {
    /// `[[ … ]]`: words neither split nor match file names here, but numbers are arithmetic.
    pub(in super::super) fn condition(&mut self, words: &[Word], span: &Span) -> Judged {
        words.iter().try_for_each(|word| self.word(word))?;
        let joins = |word: &Word| matches!(self.part(&word.span), "&&" | "||");
        let fits = words.split(joins).all(|term| !term.is_empty() && self.is_condition(term));
        match fits {
            true => Ok(()),
            false => Err(Refusal::new(
                self.part(span),
                "this condition is not followed: some of them run what stands in a variable",
                "Use [[ A == B ]], [[ -f A ]] and numbers that are known.",
            )),
        }
    }

    fn is_condition(&self, term: &[Word]) -> bool {
        let written = |word: &Word| self.part(&word.span).to_owned();
        match term {
            [not, rest @ ..] if written(not) == "!" && !rest.is_empty() => self.is_condition(rest),
            [_] => true,
            [operator, operand] => match written(operator).as_str() {
                "-v" => operand.literal().is_some_and(|name| assign::is_plain(&name)),
                "-t" => operand.literal().is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit())),
                operator => listed(UNARY, operator),
            },
            [left, operator, right] => match written(operator).as_str() {
                "=~" => true,
                operator if listed(NUMERIC, operator) => self.is_number(left) && self.is_number(right),
                operator => listed(BINARY, operator),
            },
            _ => false,
        }
    }

    /// Whether a word is a number and no expression.
    fn is_number(&self, word: &Word) -> bool {
        word.pieces.iter().all(|piece| match piece {
            Piece::Text(text) => text.bytes().all(|b| b.is_ascii_digit() || b == b'-'),
            Piece::Parameter { name, plain: true, .. } => self.facts.is_number(name),
            // A length.
            Piece::Parameter { plain: false, .. } => {
                let text = self.part(&word.span);
                text.trim_matches('"').starts_with("${#")
                    && word.pieces.iter().filter(|p| !matches!(p, Piece::Text(_))).count() == 1
            }
            Piece::Arithmetic { .. } => true,
            _ => false,
        })
    }
}
