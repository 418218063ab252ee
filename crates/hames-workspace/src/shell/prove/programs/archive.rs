//! Archives and compressed files, as far as they are listed or unpacked to the output.

use super::super::judge::{Judge, Judged};
use super::super::options::Options;
use super::Call;

const OPTIONS: Options = Options {
    allowed: "-t --list -v --verbose -f: --file: -z --gzip --gunzip -j --bzip2 -J --xz --zstd -a --auto-compress --wildcards \
              --full-time --numeric-owner --utc -R --block-number --exclude: --strip-components:",
    refused: &[
        ("-x --extract --get", "it writes the files of the archive"),
        ("-c --create -r --append -u --update -A --catenate --concatenate --delete", "it writes the archive"),
        ("-I --use-compress-program", "it runs a program"),
        (
            "--to-command --checkpoint-action --info-script -F --new-volume-script --rmt-command --rsh-command",
            "it runs a program",
        ),
        ("--index-file", "it writes into a file"),
    ],
    stop: false,
};

const COMPRESSOR: Options = Options {
    allowed: "-c --stdout --to-stdout -d --decompress --uncompress -l --list -t --test -v --verbose -q --quiet -k --keep",
    refused: &[
        ("-o --output-dir-flat --output-dir-mirror", "it writes into a file"),
        ("--rm", "it removes the file"),
        ("-f --force", "it replaces files"),
        ("-S --suffix", "it says which files are replaced"),
        ("-r --recursive", "it packs whole folders"),
        ("--files --files0 --filelist", "it takes names from a file"),
    ],
    stop: false,
};

/// `gzip`, `xz` and their like. In some of them the last of `-d`, `-l` and `-t` counts, so `-d` needs `-c`.
pub(in super::super) fn compressor(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    let parsed = COMPRESSOR.parse(call.name, call.args)?;
    let looks = parsed.has(&["-l", "--list", "-t", "--test"]);
    let unpacks = parsed.has(&["-d", "--decompress", "--uncompress"]);
    if !parsed.has(&["-c", "--stdout", "--to-stdout"]) && (unpacks || !looks) {
        return Err(call.refusal("", "it replaces the file unless it writes to the output", "Use -dc, -l or -t."));
    }
    match parsed.operands.iter().all(|operand| operand.known().is_some()) {
        true => Ok(()),
        false => Err(call.refusal("", "the names of its files are not known beforehand", "Write them out.")),
    }
}

pub(in super::super) fn tar(_: &mut Judge<'_>, call: &Call<'_>) -> Judged {
    // The old form: the first word is letters without a dash.
    let mut args = call.args.to_vec();
    if let Some(first) = args.first_mut()
        && let Some(letters) = first.known().filter(|word| !word.starts_with('-'))
    {
        // Their values come behind them in order: only one that takes a value, and that as the last, is read alike.
        if !letters.bytes().all(|letter| letter.is_ascii_lowercase())
            || letters.find('f').is_some_and(|at| at + 1 < letters.len())
        {
            return Err(call.refusal(letters, "these letters are read in two ways", "Use tar -tf ARCHIVE."));
        }
        first.value = super::super::value::Value::Known(format!("-{letters}"));
    }
    let parsed = OPTIONS.parse(call.name, &args)?;
    if !parsed.has(&["-t", "--list"]) {
        return Err(call.refusal("", "only listing with -t is known to only read", "Use tar -tf ARCHIVE."));
    }
    if !parsed.has(&["-f", "--file"]) {
        return Err(call.refusal("", "without -f it may read a tape or another host", "Use tar -tf ARCHIVE."));
    }
    for (option, value) in &parsed.given {
        if matches!(*option, "-f" | "--file") && value.as_deref().is_none_or(|archive| archive.contains(':')) {
            let why = "an archive whose name may hold a colon is fetched from another host";
            return Err(call.refusal(option, why, "Name the archive, with ./ and without a colon."));
        }
    }
    Ok(())
}
