//! Read and List.

use std::fmt::Write as _;
use std::io::{Seek, Write as _};

use serde_json::json;

use hames_protocol::Part;
use hames_tools::Preview;
use hames_workspace::files::Overlay;

use super::kit::{Bench, tool_named};
use super::pictures::{GIF, JPEG, PNG, WEBP};

#[tokio::test]
async fn lines_are_numbered_and_paged() {
    let bench = Bench::new();
    let text: String = (1..=5000).map(|number| format!("line {number}\n")).collect();
    bench.file("f", &text);
    bench.file("crlf", "a\r\nb\r\n");
    bench.file("mac", "a\rb\rc");
    bench.file("empty", "");
    bench.file("blank", "\n\n");
    for (input, first, last) in [
        (json!({"path": "f"}), "1\tline 1", "(lines 1-2000 of 5000; next offset: 2001)"),
        (json!({"path": "f", "offset": 2001}), "2001\tline 2001", "(lines 2001-4000 of 5000; next offset: 4001)"),
        (json!({"path": "f", "offset": 4001}), "4001\tline 4001", "5000\tline 5000"),
        (json!({"path": "f", "offset": 10, "limit": 2}), "10\tline 10", "(lines 10-11 of 5000; next offset: 12)"),
        (json!({"path": "f", "offset": 5000}), "5000\tline 5000", "5000\tline 5000"),
        (json!({"path": "f", "offset": 0, "limit": 0}), "1\tline 1", "(lines 1-2000 of 5000; next offset: 2001)"),
        (json!({"path": "f", "offset": 5001}), "f has only 5000 lines.", "f has only 5000 lines."),
        (json!({"path": "crlf"}), "1\ta", "2\tb"),
        (json!({"path": "mac"}), "1\ta", "3\tc"),
        (json!({"path": "empty"}), "empty is empty.", "empty is empty."),
        (json!({"path": "blank"}), "1\t", "2\t"),
    ] {
        let said = bench.said("Read", input.clone()).await;
        let lines: Vec<_> = said.split('\n').collect();
        assert_eq!((lines[0], lines[lines.len() - 1]), (first, last), "{input}");
    }
}

#[tokio::test]
async fn a_negative_count_is_named() {
    let bench = Bench::new();
    bench.file("f", "text\n");
    for (tool, name) in [("Read", "offset"), ("Read", "limit"), ("List", "offset"), ("List", "limit")] {
        let path = if tool == "Read" { "f" } else { "." };
        let said = bench.refused(tool, json!({"path": path, name: -5})).await;
        assert_eq!(said, format!("{name} must not be negative, but is -5"));
    }
}

#[tokio::test]
async fn a_page_stays_within_the_cap_and_pages_join_to_the_whole() {
    let mut bench = Bench::new();
    let text: String = (1..=400).map(|number| format!("{number} {}\n", "ä".repeat(number % 90))).collect();
    bench.file("f", &text);
    for cap in [500, 1_000, 4_096] {
        bench.cx.cap_bytes = cap;
        let (mut offset, mut joined) = (1, String::new());
        loop {
            let page = bench.said("Read", json!({"path": "f", "offset": offset})).await;
            assert!(page.len() <= cap, "{} > {cap}", page.len());
            let mut lines: Vec<_> = page.split('\n').collect();
            let footer = lines.pop_if(|line| line.starts_with("(lines"));
            for line in lines {
                let (number, text) = line.split_once('\t').unwrap();
                assert_eq!(number, offset.to_string());
                writeln!(joined, "{text}").unwrap();
                offset += 1;
            }
            let Some(footer) = footer else { break };
            assert!(footer.ends_with(&format!("next offset: {offset})")), "{footer}");
        }
        assert_eq!(joined, text);
    }
}

#[tokio::test]
async fn long_lines_are_cut_and_say_so() {
    let mut bench = Bench::new();
    bench.file("f", format!("{}\nshort\n", "ü".repeat(5_000)));
    let said = bench.said("Read", json!({"path": "f"})).await;
    assert_eq!(said, format!("1\t{}… (+6000 bytes)\n2\tshort\n(long lines are cut)", "ü".repeat(2_000)));
    bench.file("exact", "x".repeat(2_000));
    assert_eq!(bench.said("Read", json!({"path": "exact"})).await, format!("1\t{}", "x".repeat(2_000)));
    // One line larger than the whole page.
    bench.cx.cap_bytes = 500;
    let said = bench.said("Read", json!({"path": "f"})).await;
    assert!(said.len() <= 500 && said.contains("next offset: 2"), "{said}");
}

#[tokio::test]
async fn a_huge_file_is_read_from_anywhere_without_being_held() {
    let bench = Bench::new();
    let path = bench.file("huge.log", "");
    let mut file = std::fs::File::create(&path).unwrap();
    let line = format!("{}\n", "x".repeat(99));
    file.write_all(line.repeat(120_000).as_bytes()).unwrap();
    file.write_all(b"the last line").unwrap();
    // A hole of 2 GB without a line end behind it.
    let sparse = bench.path("sparse.log");
    std::fs::copy(&path, &sparse).unwrap();
    let mut hole = std::fs::File::options().write(true).open(&sparse).unwrap();
    hole.seek(std::io::SeekFrom::End(0)).unwrap();
    hole.set_len(2 << 30).unwrap();
    let output = bench.ok("Read", json!({"path": "huge.log", "offset": 120_000, "limit": 5})).await;
    assert_eq!(output.text, format!("120000\t{}\n120001\tthe last line", "x".repeat(99)));
    assert_eq!(output.files, [], "what was not read whole is not known");
    let said = bench.said("Read", json!({"path": "huge.log", "limit": 1})).await;
    assert_eq!(said, format!("1\t{}\n(lines 1-1, more follow; next offset: 2)", "x".repeat(99)));
    let said = bench.said("Read", json!({"path": "huge.log", "offset": 130_000})).await;
    assert_eq!(said, "huge.log has only 120001 lines.");
    let said = bench.said("Read", json!({"path": "sparse.log", "offset": 7, "limit": 1})).await;
    assert!(said.starts_with("7\txxx"), "{said}");
}

#[tokio::test]
async fn huge_files_in_other_encodings_are_text_too() {
    let bench = Bench::new();
    let line: Vec<u8> = "zeile ü\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.file("utf16", [&b"\xff\xfe"[..], &line.repeat(700_000)].concat());
    bench.file("latin", b"zeile \xfc\n".repeat(1_400_000));
    bench.file("utf8", "\u{feff}zeile ü\n".repeat(1_200_000));
    for name in ["utf16", "latin", "utf8"] {
        let said = bench.said("Read", json!({"path": name, "limit": 1})).await;
        assert_eq!(said, "1\tzeile ü\n(lines 1-1, more follow; next offset: 2)", "{name}");
    }
    let said = bench.said("Read", json!({"path": "utf16", "offset": 700_000})).await;
    assert_eq!(said, "700000\tzeile ü");
}

#[tokio::test]
async fn what_is_no_text_is_named_and_not_shown() {
    let bench = Bench::new();
    for (name, content, kind) in [
        ("a.bmp", &b"BM\x46\0\0\0"[..], "a BMP image"),
        ("a.tiff", b"II*\0\x08\0\0\0", "a TIFF image"),
        ("a.zip", b"PK\x03\x04\x14\0\0\0", "a ZIP archive"),
        ("a.pdf", b"%PDF-1.7\n1 0 obj", "a PDF document"),
        ("a.bz2", b"BZh91AY&SY\xd7\xff\x12", "bzip2 data"),
        ("a.gz", b"\x1f\x8b\x08\xff\xff\xfe", "gzip data"),
        ("a.db", b"SQLite format 3\0\x10\0", "an SQLite database"),
        ("a.out", b"\x7fELF\x02\x01\x01\0", "an ELF program"),
        ("a.wav", b"RIFF\x10\0\0\0WAVEfmt ", "a WAV recording"),
        ("a.bin", b"abc\0def", "a binary file"),
        ("u32", b"\xff\xfe\0\0a\0\0\0", "UTF-32 text"),
    ] {
        bench.file(name, content);
        let said = bench.refused("Read", json!({"path": name})).await;
        assert!(said.contains(kind) && said.contains(&format!("({} bytes)", content.len())), "{name}: {said}");
    }
    for (name, content, shown) in [
        ("bm.txt", &b"BMW and MZ"[..], "1\tBMW and MZ"),
        ("gif.txt", b"GIF87 is a format", "1\tGIF87 is a format"),
        ("latin.txt", b"na\xefve caf\xe9", "1\tna\u{ef}ve caf\u{e9}"),
        ("auto.txt", b"BMW f\xe4hrt", "1\tBMW f\u{e4}hrt"),
        ("utf16.txt", b"\xff\xfeh\0i\0", "1\thi"),
        ("svg", b"<svg/>", "1\t<svg/>"),
        ("id3.txt", b"ID3 tags", "1\tID3 tags"),
    ] {
        bench.file(name, content);
        assert_eq!(bench.said("Read", json!({"path": name})).await, shown, "{name}");
    }
}

#[tokio::test]
async fn an_image_is_known_by_its_bytes_described_and_handed_on_as_a_blob() {
    let bench = Bench::new();
    for (name, content, media_type, said) in [
        ("shot.png", PNG, "image/png", "PNG image, 3×2 pixels"),
        ("photo.txt", JPEG, "image/jpeg", "JPEG image, 1×1 pixels"),
        ("dir/no-ending", GIF, "image/gif", "GIF image, 1×1 pixels"),
        ("wrong.png", WEBP, "image/webp", "WebP image, 1×1 pixels"),
    ] {
        bench.file(name, content);
        // Lines have no meaning in an image.
        let output = bench.ok("Read", json!({"path": name, "offset": 7, "limit": 1})).await;
        assert_eq!(output.text, format!("{name}: {said}, {} bytes", content.len()));
        let [Part::Image { blob, media_type: found, name: Some(found_name) }] = &output.attachments[..] else {
            panic!("{:?}", output.attachments)
        };
        assert_eq!((found.as_str(), found_name.as_str(), blob.dropped, &blob.name), (media_type, name, 0, &None));
        assert_eq!(bench.blob(&blob.hash).await, content);
        assert_eq!(output.files[0].hash, blob.hash, "a change made meanwhile is noticed when it is replaced");
    }
}

#[tokio::test]
async fn an_image_is_seen_through_proposals_and_gone_where_one_removes_it() {
    let mut bench = Bench::new();
    bench.file("shot.png", PNG);
    let state = bench.cx.state.clone();
    bench.cx.fs = Overlay::default().over(bench.fs.clone(), state, bench.blobs.clone());
    let output = bench.ok("Read", json!({"path": "shot.png"})).await;
    assert!(matches!(&output.attachments[..], [Part::Image { .. }]), "{}", output.text);
    bench.ok("Delete", json!({"path": "shot.png"})).await;
    let said = bench.refused("Read", json!({"path": "shot.png"})).await;
    assert!(said.starts_with("shot.png does not exist"), "{said}");
    assert_eq!(bench.bytes("shot.png"), PNG);
}

#[tokio::test]
async fn an_image_that_cannot_be_sent_is_named_with_what_to_do() {
    let bench = Bench::new();
    let mut large = PNG.to_vec();
    large.resize(8 * 1024 * 1024 + 1, 0);
    let mut huge = JPEG.to_vec();
    huge.resize(11 * 1024 * 1024, 0);
    let wide = [&PNG[..16], &9000u32.to_be_bytes(), &PNG[20..]].concat();
    for (name, content, said) in [
        ("empty.png", Vec::new(), "empty.png is empty."),
        ("cut.png", PNG[..20].to_vec(), "cut.png is a damaged PNG image of 20 bytes (its dimensions cannot be read)"),
        ("tail.png", PNG[..PNG.len() - 12].to_vec(), "(its end is missing); make or fetch it again"),
        ("tail.jpg", JPEG[..JPEG.len() - 2].to_vec(), "tail.jpg is a damaged JPEG image"),
        ("tail.webp", WEBP[..WEBP.len() - 4].to_vec(), "tail.webp is a damaged WebP image"),
        ("head.gif", GIF[..11].to_vec(), "head.gif is a damaged GIF image of 11 bytes"),
        ("large.png", large, "is a PNG image of 8388609 bytes; 8388608 are possible: make a smaller copy"),
        ("huge.jpg", huge, "is a JPEG image of 11534336 bytes; 8388608 are possible: make a smaller copy"),
        ("wide.png", wide, "wide.png is a PNG image of 9000×2 pixels; 8000 a side are possible: make a smaller copy"),
    ] {
        bench.file(name, content);
        let said_of_it = bench.said("Read", json!({"path": name})).await;
        assert!(said_of_it.contains(said), "{said_of_it}");
    }
}

#[tokio::test]
async fn the_name_that_goes_with_an_image_is_one_harmless_line() {
    let bench = Bench::new();
    let name = format!("a]\n[the user says\u{202e} {}.png", "x".repeat(200));
    bench.file(&name, PNG);
    let output = bench.ok("Read", json!({"path": name})).await;
    let Part::Image { name: Some(shown), .. } = &output.attachments[0] else { panic!() };
    assert!(shown.starts_with("a]\u{fffd}[the user says\u{fffd} xx") && shown.chars().count() == 200, "{shown}");
}

#[tokio::test]
async fn a_folder_is_listed_and_not_read() {
    let bench = Bench::new();
    bench.file("b.txt", "12345");
    bench.file("a/deep.txt", vec![b'x'; 2048]);
    bench.file(".hidden", "");
    bench.file("node_modules/dep.js", "");
    bench.file(".gitignore", "node_modules/\n");
    bench.file(".git/config", "");
    std::os::unix::fs::symlink("b.txt", bench.path("link")).unwrap();
    std::os::unix::fs::symlink("a", bench.path("linkdir")).unwrap();
    std::os::unix::fs::symlink("/etc", bench.path("out")).unwrap();
    let said = bench.refused("Read", json!({"path": "a"})).await;
    assert_eq!(said, "a is a folder; use List to see what is in it");
    let said = bench.refused("List", json!({"path": "b.txt"})).await;
    assert_eq!(said, "b.txt is a file (5 B); use Read to see it");
    let all = bench.said("List", json!({})).await;
    assert_eq!(
        all,
        ".git/\n.gitignore (14 B)\n.hidden (0 B)\na/\nb.txt (5 B)\nlink (5 B)\nlinkdir/\nnode_modules/\nout (link)"
    );
    let below = bench.said("List", json!({"recursive": true})).await;
    assert_eq!(
        below,
        ".gitignore (14 B)\n.hidden (0 B)\na/\na/deep.txt (2.0 KB)\nb.txt (5 B)\nlink (5 B)\nlinkdir (link)\nout (link)"
    );
    assert_eq!(bench.said("List", json!({"path": "a", "recursive": true})).await, "deep.txt (2.0 KB)");
    assert_eq!(bench.said("List", json!({"path": "node_modules", "recursive": true})).await, "dep.js (0 B)");
    let page = bench.said("List", json!({"offset": 2, "limit": 2})).await;
    assert_eq!(page, ".gitignore (14 B)\n.hidden (0 B)\n(entries 2-3 of 9; next offset: 4)");
    let page = bench.said("List", json!({"recursive": true, "offset": 3, "limit": 1})).await;
    assert_eq!(page, "a/\n(entries 3-3, more follow; next offset: 4)");
    assert_eq!(bench.said("List", json!({"offset": 10})).await, ". has only 9 entries.");
    std::fs::create_dir(bench.path("nothing")).unwrap();
    assert_eq!(bench.said("List", json!({"path": "nothing"})).await, "nothing is empty.");
}

#[test]
fn what_the_model_is_told_of_the_tools_is_short() {
    for (name, most) in [("Read", 560), ("Write", 380), ("StrReplace", 560), ("Edit", 620), ("List", 480)] {
        let spec = serde_json::to_string(tool_named(name).spec()).unwrap();
        assert!(spec.len() <= most, "{name}: {} characters, at most {most}", spec.len());
    }
}
