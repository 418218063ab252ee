//! Blobs.

use std::fs;
use std::path::Path;

use hames_protocol::*;

use crate::kit::*;

fn put(home: &Home, id: &SessionId, name: &str, bytes: Vec<u8>) -> BlobRef {
    wait(home.store().blobs().put(id, name, BlobSource::Bytes(bytes))).unwrap()
}

fn get(home: &Home, hash: &str, offset: u64, limit: u64) -> Result<Vec<u8>, LogError> {
    wait(home.store().blobs().get(hash, offset, limit))
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n * 31 % 251) as u8).collect()
}

fn files(path: &Path) -> usize {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

#[test]
fn content_of_every_size_comes_back_exactly() {
    let mut home = Home::new();
    let id = home.session("one").id;
    for size in [0, 1, 4095, 65_535, 65_536, 65_537, 200_000, 3_000_000] {
        let bytes = content(size);
        let blob = put(&home, &id, &format!("out-{size}"), bytes.clone());
        assert_eq!(blob.hash, blake3::hash(&bytes).to_hex().to_string());
        assert_eq!((blob.bytes, blob.dropped), (size as u64, 0));
        home.reopen();
        assert_eq!(get(&home, &blob.hash, 0, u64::MAX).unwrap(), bytes, "{size}");
        assert_eq!(get(&home, &blob.hash, 0, 0).unwrap(), Vec::<u8>::new());
        assert_eq!(get(&home, &blob.hash, u64::MAX, u64::MAX).unwrap(), Vec::<u8>::new());
        let middle = size / 2;
        let end = (middle + 100).min(size);
        assert_eq!(get(&home, &blob.hash, middle as u64, 100).unwrap(), bytes[middle..end], "{size}");
    }
}

#[test]
fn the_same_content_is_kept_once_and_goes_with_its_last_session() {
    let home = Home::new();
    let (one, two) = (home.session("one").id, home.session("two").id);
    for size in [100, 100_000] {
        let a = put(&home, &one, "a", content(size));
        let b = put(&home, &two, "b", content(size));
        assert_eq!(a.hash, b.hash);
    }
    let only_one = put(&home, &one, "", content(90_000));
    assert_eq!(files(&home.path().join("blobs")), 2);
    home.store().delete(&one, "t").unwrap();
    assert_eq!(files(&home.path().join("blobs")), 1);
    assert!(matches!(get(&home, &only_one.hash, 0, 1), Err(LogError::Damaged(_))));
    let shared = blake3::hash(&content(100_000)).to_hex().to_string();
    assert_eq!(get(&home, &shared, 0, u64::MAX).unwrap(), content(100_000));
    home.store().delete(&two, "t").unwrap();
    assert_eq!(files(&home.path().join("blobs")), 0);
    let rows: i64 = home.sql().query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn a_file_is_moved_in_with_what_was_left_out() {
    let home = Home::new();
    let id = home.session("one").id;
    let elsewhere = tempfile::tempdir().unwrap();
    let other_disk = tempfile::tempdir_in("/dev/shm").ok();
    for folder in [Some(&elsewhere), other_disk.as_ref()].into_iter().flatten() {
        for size in [10, 70_000, 80_000] {
            let path = folder.path().join("spool");
            fs::write(&path, content(size)).unwrap();
            let source = BlobSource::File { path: path.clone(), dropped: 9 };
            let blob = wait(home.store().blobs().put(&id, "out-1", source)).unwrap();
            assert_eq!((blob.bytes, blob.dropped), (size as u64, 9));
            assert_eq!(get(&home, &blob.hash, 0, u64::MAX).unwrap(), content(size));
            assert!(!path.exists());
            assert_eq!(home.store().blob_named(&id, "out-1").unwrap(), Some(blob));
        }
    }
    let missing = BlobSource::File { path: elsewhere.path().join("none"), dropped: 0 };
    assert!(matches!(wait(home.store().blobs().put(&id, "x", missing)), Err(LogError::Io(_))));
}

#[test]
fn a_name_resolves_in_its_own_session_only() {
    let home = Home::new();
    let (one, two) = (home.session("one").id, home.session("two").id);
    let first = put(&home, &one, "out-1", content(10));
    let other = put(&home, &two, "out-1", content(11));
    assert_eq!(home.store().blob_named(&one, "out-1").unwrap(), Some(first));
    assert_eq!(home.store().blob_named(&two, "out-1").unwrap(), Some(other));
    for name in ["", "out-2", "OUT-1", "out-1 ", "%", "../out-1"] {
        assert_eq!(home.store().blob_named(&one, name).unwrap(), None, "{name:?}");
    }
    assert_eq!(home.store().blob_named(&"none".into(), "out-1").unwrap(), None);
    let nowhere = wait(home.store().blobs().put(&"none".into(), "x", BlobSource::Bytes(vec![1])));
    assert_eq!(nowhere, Err(LogError::NoSession("none".into())));
}

#[test]
fn what_is_no_blob_is_an_error_in_words() {
    let home = Home::new();
    let id = home.session("one").id;
    let blob = put(&home, &id, "", content(100_000));
    let nonsense =
        ["", "x", "../../etc/passwd", "éé", &"0".repeat(64), &"Z".repeat(64), &"é".repeat(32), &blob.hash[1..]];
    for hash in nonsense {
        assert!(matches!(get(&home, hash, 0, 9), Err(LogError::Damaged(_))), "{hash:?}");
    }
    fs::remove_dir_all(home.path().join("blobs")).unwrap();
    let error = get(&home, &blob.hash, 0, 9).unwrap_err();
    assert!(error.to_string().contains(&blob.hash), "{error}");
    // Content that is put again is there again.
    put(&home, &id, "", content(100_000));
    assert_eq!(get(&home, &blob.hash, 0, 9).unwrap(), content(9));
}

#[test]
fn of_content_past_the_limit_head_and_tail_are_kept() {
    const LIMIT: u64 = 256 * 1024 * 1024;
    let home = Home::new();
    let id = home.session("one").id;
    let path = home.path().join("spool");
    // A sparse file: nothing of its middle is on the disk.
    let file = fs::File::create(&path).unwrap();
    file.set_len(LIMIT + 12_345).unwrap();
    use std::os::unix::fs::FileExt;
    file.write_all_at(b"head", 0).unwrap();
    file.write_all_at(b"tail", LIMIT + 12_341).unwrap();
    let blob = wait(home.store().blobs().put(&id, "out-1", BlobSource::File { path, dropped: 5 })).unwrap();
    assert_eq!((blob.bytes, blob.dropped), (LIMIT, 12_350));
    assert_eq!(get(&home, &blob.hash, 0, 4).unwrap(), b"head");
    assert_eq!(get(&home, &blob.hash, LIMIT - 4, 9).unwrap(), b"tail");
}
