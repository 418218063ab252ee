//! Reading event rows straight from the pages of a database file, for those whose way from the root is lost.
//!
//! Follows SQLite's published file format as far as leaf pages of tables go, for the one page size this crate uses.
//! Everything read is checked against the file before it is believed; what does not fit is passed over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::types::Value;

use crate::fault::Fault;

const PAGE: usize = 4096;
/// The first page begins with the header of the file.
const FILE_HEADER: usize = 100;
/// The kind of page that holds rows.
const TABLE_LEAF: u8 = 13;
const LEAF_HEADER: usize = 8;
/// Payload up to this many bytes lies wholly in its page; of longer ones at least `SPILL_MIN` do.
const LOCAL_MAX: usize = PAGE - 35;
const SPILL_MIN: usize = (PAGE - 12) * 32 / 255 - 23;
const OVERFLOW_ROOM: usize = PAGE - 4;
/// SQLite's own limit on a row.
const ROW_MAX: usize = 1_000_000_000;
/// Columns of an event as they are stored: all but the computed ones.
const EVENT_COLUMNS: usize = 9;

/// Hands over the key and the columns of every row that looks like an event. The first column is the key itself.
pub(crate) fn scan_events(
    database: &Path,
    mut each: impl FnMut(i64, Vec<Value>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Ok(pages) = Pages::open(database) else { return Ok(()) };
    for number in 1..=pages.count {
        let Some(page) = pages.get(number) else { continue };
        let start = if number == 1 { FILE_HEADER } else { 0 };
        if page.get(start) != Some(&TABLE_LEAF) {
            continue;
        }
        let cells = u16_at(&page, start + 3).unwrap_or(0);
        for cell in 0..cells {
            let Some(at) = u16_at(&page, start + LEAF_HEADER + 2 * cell) else { break };
            let row = page.get(at..).and_then(|cell| pages.row(cell));
            if let Some((key, values)) = row.filter(|(_, values)| is_event(values)) {
                each(key, values)?;
            }
        }
    }
    Ok(())
}

fn is_event(values: &[Value]) -> bool {
    values.len() == EVENT_COLUMNS
        && values[0] == Value::Null
        && matches!((&values[1], &values[2]), (Value::Integer(_), Value::Integer(_)))
        && matches!((&values[7], &values[8]), (Value::Text(_), Value::Text(_) | Value::Blob(_)))
}

struct Pages {
    file: File,
    count: usize,
}

impl Pages {
    fn open(database: &Path) -> io::Result<Pages> {
        let file = File::open(database)?;
        let count = usize::try_from(file.metadata()?.len()).unwrap_or(0) / PAGE;
        Ok(Pages { file, count })
    }

    fn get(&self, number: usize) -> Option<Vec<u8>> {
        if number == 0 || number > self.count {
            return None;
        }
        let mut page = vec![0; PAGE];
        self.file.read_exact_at(&mut page, ((number - 1) * PAGE) as u64).ok()?;
        Some(page)
    }

    /// The row of a cell: the length of its payload, its key, its payload.
    fn row(&self, cell: &[u8]) -> Option<(i64, Vec<Value>)> {
        let (length, rest) = varint(cell)?;
        let (key, rest) = varint(rest)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= ROW_MAX.min(self.count * PAGE))?;
        let payload = self.payload(rest, length)?;
        Some((key.cast_signed(), columns(&payload)?))
    }

    fn payload(&self, local: &[u8], length: usize) -> Option<Vec<u8>> {
        if length <= LOCAL_MAX {
            return local.get(..length).map(<[u8]>::to_vec);
        }
        let spill = SPILL_MIN + (length - SPILL_MIN) % OVERFLOW_ROOM;
        let kept = if spill <= LOCAL_MAX { spill } else { SPILL_MIN };
        let mut payload = local.get(..kept)?.to_vec();
        let mut next = u32_at(local, kept)?;
        while payload.len() < length {
            let page = self.get(next)?;
            let wanted = (length - payload.len()).min(OVERFLOW_ROOM);
            payload.extend_from_slice(&page[4..4 + wanted]);
            next = u32_at(&page, 0)?;
        }
        Some(payload)
    }
}

/// The values of a record.
fn columns(payload: &[u8]) -> Option<Vec<Value>> {
    let (header, rest) = varint(payload)?;
    let header = usize::try_from(header).ok()?;
    let mut kinds = payload.get(payload.len() - rest.len()..header)?;
    let mut body = payload.get(header..)?;
    let mut values = Vec::new();
    while !kinds.is_empty() {
        let (kind, rest) = varint(kinds)?;
        kinds = rest;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => usize::try_from((kind - 12) / 2).ok()?,
        };
        let (bytes, rest) = body.split_at_checked(size)?;
        body = rest;
        values.push(match kind {
            0 => Value::Null,
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            1..=6 => Value::Integer(integer(bytes)),
            7 => Value::Real(f64::from_bits(integer(bytes).cast_unsigned())),
            _ if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
            _ => match std::str::from_utf8(bytes) {
                Ok(text) => Value::Text(text.to_owned()),
                Err(_) => Value::Blob(bytes.to_vec()),
            },
        });
    }
    Some(values)
}

/// A big-endian number with a sign.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |value, byte| value << 8 | i64::from(*byte))
}

/// SQLite's number of one to nine bytes, and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (n, byte) in bytes.iter().take(9).enumerate() {
        if n == 8 {
            return Some((value << 8 | u64::from(*byte), &bytes[9..]));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[n + 1..]));
        }
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let pair = bytes.get(at..at + 2)?;
    Some(usize::from(u16::from_be_bytes([pair[0], pair[1]])))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at + 4)?;
    usize::try_from(u32::from_be_bytes([four[0], four[1], four[2], four[3]])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn database(rows: &[(i64, String, Option<i64>)]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = crate::open::create(&path).unwrap();
        for (key, body, turn) in rows {
            let sql = "INSERT INTO events (key, v, at, turn, type, body) VALUES (?1, 1, -3, ?2, 'x', ?3)";
            db.execute(sql, (key, turn, body)).unwrap();
        }
        db.close().unwrap();
        (folder, path)
    }

    #[test]
    fn every_row_is_found_whatever_its_size() {
        let sizes = [0, 1, 100, 4000, 4030, 4040, 4050, 4060, 4061, 4070, 4550, 5000, 8000, 8191, 20_000, 100_000];
        let numbers = [0, 1, -1, 127, -129, 40_000, i64::MIN, i64::MAX];
        let rows: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(n, size)| ((n as i64 + 1) << 32 | 7, "é".repeat(*size), Some(numbers[n % numbers.len()])))
            .collect();
        let (_folder, path) = database(&rows);
        let mut found = Vec::new();
        scan_events(&path, |key, values| {
            let (Value::Text(body), Value::Integer(turn)) = (&values[8], &values[4]) else { panic!("{values:?}") };
            found.push((key, body.clone(), Some(*turn)));
            Ok(())
        })
        .unwrap();
        found.sort();
        assert_eq!(found, rows);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), leaf in any::<bool>()) {
            let mut page = bytes.repeat(1 + 9000 / bytes.len().max(1));
            if leaf && page.len() > PAGE {
                page[PAGE] = TABLE_LEAF;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.db");
            std::fs::write(&path, &page).unwrap();
            scan_events(&path, |_, _| Ok(())).unwrap();
            let _ = columns(&bytes);
            let _ = varint(&bytes);
        }
    }
}
