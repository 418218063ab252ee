//! The token of loopback TCP: random, in a file that only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const HEX_DIGITS: usize = 64;

/// The token in this file, or a new one that is written there. A file that others could read is replaced.
pub fn token(file: &Path) -> io::Result<String> {
    match read(file)? {
        Some(token) => Ok(token),
        None => write(file),
    }
}

fn read(file: &Path) -> io::Result<Option<String>> {
    // Not through a link, and never waiting for the other end of a pipe.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or(0)).open(file);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = opened.metadata()?;
    let is_private = found.is_file() && found.mode() & 0o077 == 0 && found.uid() == rustix::process::geteuid().as_raw();
    let mut text = String::new();
    if !is_private || opened.take(1024).read_to_string(&mut text).is_err() {
        return Ok(None);
    }
    let token = text.trim_end();
    let is_token = token.len() == HEX_DIGITS && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(is_token.then(|| token.to_owned()))
}

fn write(file: &Path) -> io::Result<String> {
    let mut random = [0u8; HEX_DIGITS / 2];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(format!("no random bytes: {error}")))?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    // Written whole beside it and renamed, so that nobody reads half a token.
    let beside = file.with_extension("new");
    let _ = fs::remove_file(&beside);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    new.write_all(token.as_bytes())?;
    new.sync_all()?;
    fs::rename(&beside, file)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_is_private_and_is_replaced_where_others_could_have_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let first = token(&file).unwrap();
        assert_eq!((first.len(), token(&file).unwrap()), (HEX_DIGITS, first.clone()));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let second = token(&file).unwrap();
        assert_ne!(second, first);

        for content in ["", "short", "zz", &"g".repeat(HEX_DIGITS)] {
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(token(&file).unwrap().len(), HEX_DIGITS, "{content:?}");
        }

        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "a".repeat(HEX_DIGITS)).unwrap();
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        assert_ne!(token(&file).unwrap(), "a".repeat(HEX_DIGITS));
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
    }
}
