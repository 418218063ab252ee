//! StrReplace, Edit and Write: exact, literal, and keeping the file what it is.

use serde_json::json;

use super::kit::Bench;

struct Case {
    before: &'static [u8],
    old: &'static str,
    new: &'static str,
    all: bool,
    after: &'static [u8],
}

const fn one(before: &'static [u8], old: &'static str, new: &'static str, after: &'static [u8]) -> Case {
    Case { before, old, new, all: false, after }
}

const fn every(before: &'static [u8], old: &'static str, new: &'static str, after: &'static [u8]) -> Case {
    Case { before, old, new, all: true, after }
}

/// Each edit through both tools, byte for byte.
async fn check(cases: &[Case]) {
    for (number, case) in cases.iter().enumerate() {
        for tool in ["StrReplace", "Edit"] {
            let bench = Bench::new();
            bench.file("f", case.before);
            let edit = json!({"old_string": case.old, "new_string": case.new, "replace_all": case.all});
            let input = if tool == "Edit" {
                json!({"path": "f", "edits": [edit]})
            } else {
                json!({"path": "f", "old_string": case.old, "new_string": case.new, "replace_all": case.all})
            };
            bench.ok(tool, input).await;
            let after = bench.bytes("f");
            assert_eq!(
                after.escape_ascii().to_string(),
                case.after.escape_ascii().to_string(),
                "case {number}, {tool}: {:?} -> {:?}",
                case.old,
                case.new
            );
        }
    }
}

#[tokio::test]
async fn a_search_text_with_lf_finds_crlf_text_and_the_file_keeps_its_line_ends() {
    check(&[
        one(b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "one\n2", b"one\r\n2\r\nthree\r\n"),
        one(b"one\r\ntwo\r\nthree\r\n", "two", "2a\n2b", b"one\r\n2a\r\n2b\r\nthree\r\n"),
        one(b"one\r\ntwo\r\nthree\r\n", "one\ntwo\nthree\n", "1\n", b"1\r\n"),
        one(b"one\r\ntwo\r\nthree", "\nthree", "\n3\n4", b"one\r\ntwo\r\n3\r\n4"),
        one(b"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", b"1\r\n2\r\n"),
        one(b"one\ntwo\n", "one\r\ntwo", "1\r\n2", b"1\n2\n"),
        one(b"one\r\n\r\ntwo\r\n", "one\n\ntwo", "one\ntwo", b"one\r\ntwo\r\n"),
        one(b"a\rb\rc\r", "a\nb", "a\nB\nbb", b"a\rB\rbb\rc\r"),
        every(b"x\r\ny\r\nx\r\ny\r\n", "x\ny", "z\nz\nz", b"z\r\nz\r\nz\r\nz\r\nz\r\nz\r\n"),
        one(b"a\r\nb", "b", "b\n", b"a\r\nb\r\n"),
        one(
            b"if x {\r\n\tcall();\r\n}\r\n",
            "{\n\tcall();\n}",
            "{\n\tcall();\n} else {\n}",
            b"if x {\r\n\tcall();\r\n} else {\r\n}\r\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn line_ends_that_an_edit_does_not_touch_stay_as_they_are() {
    check(&[
        one(b"a\r\nb\nprog 1%\rprog 2%\nd\r\n", "b", "B", b"a\r\nB\nprog 1%\rprog 2%\nd\r\n"),
        one(b"a\r\nb\nprog 1%\rprog 2%\nd\r\n", "prog 2%", "prog 3%", b"a\r\nb\nprog 1%\rprog 3%\nd\r\n"),
        one(b"a\r\nb\nprog 1%\rprog 2%\nd\r\n", "1%\rprog", "1%\rPROG", b"a\r\nb\nprog 1%\rPROG 2%\nd\r\n"),
        // A new line ends like the line it grew from.
        one(b"a\r\nb\nc\r\n", "b", "b\nbb", b"a\r\nb\nbb\nc\r\n"),
        one(b"a\r\nb\nc\r\n", "c", "c\ncc", b"a\r\nb\nc\r\ncc\r\n"),
        // Old and new lines one to one: each keeps its own end.
        one(b"a\r\nb\nc\r\n", "a\nb\nc", "A\nB\nC", b"A\r\nB\nC\r\n"),
        one(b"a\nb\r\nc\n", "a\nb\nc\n", "a\nb\nC\n", b"a\nb\r\nC\n"),
        // A line that goes takes its own end with it.
        one(b"a\r\nb\nc\n", "a\nb\nc", "a\nc", b"a\r\nc\n"),
        one(b"a\r\r\nb\n", "b", "c", b"a\r\r\nc\n"),
        one(b"\n\r\n\n", "\n\n\n", "\n\nx\n", b"\n\r\nx\n"),
        one(b"no end", "no", "an", b"an end"),
        one(b"a\r\nb\r\n", "b\r\n", "b\n", b"a\r\nb\n"),
        one(b"a\nb\n", "b", "b\r\nc", b"a\nb\r\nc\n"),
        one(b"x\ry", "x", "x\nz", b"x\rz\ry"),
    ])
    .await;
}

#[tokio::test]
async fn only_byte_equal_texts_are_no_change() {
    check(&[
        one(b"'%s'\n", "'%s'", "\u{2018}%s\u{2019}", b"\xe2\x80\x98%s\xe2\x80\x99\n"),
        one("\u{201c}q\u{201d}".as_bytes(), "\u{201c}q\u{201d}", "\"q\"", b"\"q\""),
        one(b"a - b", "a - b", "a \u{2013} b", "a \u{2013} b".as_bytes()),
        one(b"a b", "a b", "a\u{a0}b", "a\u{a0}b".as_bytes()),
        one("caf\u{e9}".as_bytes(), "caf\u{e9}", "cafe\u{301}", "cafe\u{301}".as_bytes()),
        one(b"Readme", "Readme", "README", b"README"),
        one(b"x  ", "x  ", "x", b"x"),
        one(b"\tx", "\tx", "    x", b"    x"),
        one(b"...", "...", "\u{2026}", "\u{2026}".as_bytes()),
        one(b"end\n", "end\n", "end", b"end"),
    ])
    .await;
    let bench = Bench::new();
    bench.file("f", "same\n");
    for input in [
        json!({"path": "f", "old_string": "same", "new_string": "same"}),
        json!({"path": "f", "old_string": "absent", "new_string": "absent"}),
    ] {
        let said = bench.refused("StrReplace", input).await;
        assert!(said.contains("no change"), "{said}");
    }
    assert_eq!(bench.changes(), []);
}

#[tokio::test]
async fn the_new_text_is_literal() {
    let texts = [
        r#"log("$& $1 $$ ${0} \\1");"#,
        "$&",
        "$1$2",
        "$$",
        "${0}",
        "\\1 \\0 \\g<1>",
        "$`$'",
        "%s %d {} {0} #{x}",
        "&",
        "\\n\\t\\",
        "&amp;&#38;&lt;",
        "$<name>",
    ];
    for text in texts {
        for all in [false, true] {
            let bench = Bench::new();
            bench.file("f", r#"log("done");"#);
            let input = json!({"path": "f", "old_string": r#"log("done");"#, "new_string": text, "replace_all": all});
            bench.ok("StrReplace", input).await;
            assert_eq!(bench.bytes("f"), text.as_bytes(), "replace_all: {all}");
        }
    }
}

#[tokio::test]
async fn the_search_text_is_literal() {
    check(&[
        one(b"a.c abc", "a.c", "x", b"x abc"),
        one(b"f(x)*", "f(x)*", "y", b"y"),
        one(b"[a-z]+ q", "[a-z]+", "y", b"y q"),
        one(b"a|b a", "a|b", "c", b"c a"),
        one(b"^start", "^start", "s", b"s"),
        one(b"\\d 1", "\\d", "digit", b"digit 1"),
        one(b"&amp; &", "&amp;", "and", b"and &"),
        one(b"$HOME x", "$HOME", "~", b"~ x"),
        every(b"*.rs *.rs xrs", "*.rs", "*.c", b"*.c *.c xrs"),
    ])
    .await;
}

#[tokio::test]
async fn entities_are_neither_decoded_nor_encoded() {
    let contents = [
        "<p>&lt;b&gt; &amp;amp;</p>",
        "&quot;&apos;&#39;&#x27;",
        "&nbsp;&copy;",
        "a && b || c",
        "<![CDATA[ & ]]>",
        "%3Cp%3E %26",
        "\\u003cp\\u003e \\n",
        "&amp;amp;amp;",
        "&lt",
        "\u{a0}\u{2028}\u{200b}\u{1f600}",
    ];
    for content in contents {
        let bench = Bench::new();
        bench.ok("Write", json!({"path": "page.html", "content": content})).await;
        assert_eq!(bench.bytes("page.html"), content.as_bytes());
        bench.ok("Write", json!({"path": "page.html", "content": format!("{content}\n{content}")})).await;
        assert_eq!(bench.bytes("page.html"), format!("{content}\n{content}").as_bytes());
    }
    check(&[
        one(b"<p>&lt;b&gt; &amp;amp;</p>", "&amp;", "&#38;", b"<p>&lt;b&gt; &#38;amp;</p>"),
        one(b"x < y &lt; z", "&lt;", "<", b"x < y < z"),
    ])
    .await;
}

#[tokio::test]
async fn nothing_is_matched_by_resemblance() {
    let python = "def f():\n    x = 1\n    y = 2\n";
    let misses = [
        ("    x  =  1", "line 2"),
        ("\tx = 1", "line 2"),
        ("x = 1 ", "line 2"),
        ("X = 1", "line 2"),
        ("    x = 1\n  y = 2", "line 2"),
        ("def  f():", "line 1"),
        ("def f():\n    x = 1\n    y = 3", "2\t    x = 1"),
        ("    x = 1\n\n    y = 2", "line 2"),
        ("class Unrelated:", "similar"),
        ("2\t    x = 1", "line numbers"),
        ("\u{a0}   x = 1", "line 2"),
    ];
    for (old, hint) in misses {
        let bench = Bench::new();
        bench.file("f.py", python);
        let said =
            bench.refused("StrReplace", json!({"path": "f.py", "old_string": old, "new_string": "    x = 100"})).await;
        assert!(said.contains("not found in f.py"), "{old:?}: {said}");
        assert!(said.contains(hint), "{old:?}: {said}");
        assert_eq!(bench.bytes("f.py"), python.as_bytes());
    }
}

#[tokio::test]
async fn a_text_that_occurs_more_than_once_is_refused_with_its_lines() {
    let cases = [
        ("a\nb\na\n", "a", "2 times", "lines 1, 3"),
        ("aaa", "aa", "2 times", "lines 1, 1"),
        ("x\r\ny\nx\ny\n", "x\ny", "2 times", "lines 1, 3"),
        ("é é é", "é", "3 times", "lines 1, 1, 1"),
        ("\n\n\n", "\n", "3 times", "lines 1, 2, 3"),
        ("foo foobar", "foo", "2 times", "lines 1, 1"),
        ("k: 1\nk: 1\n", "k: 1\n", "2 times", "lines 1, 2"),
        ("t\nt\nt\nt\nt\nt\nt\nt\nt\nt\n", "t", "10 times", "lines 1, 2, 3, 4, 5, 6, 7, 8, …"),
    ];
    for (content, old, times, lines) in cases {
        let bench = Bench::new();
        bench.file("f", content);
        let said = bench.refused("StrReplace", json!({"path": "f", "old_string": old, "new_string": "Z"})).await;
        assert!(said.contains(times) && said.contains(lines), "{old:?}: {said}");
        assert_eq!(bench.bytes("f"), content.as_bytes());
    }
}

#[tokio::test]
async fn a_byte_order_mark_neither_hides_the_first_line_nor_goes_away() {
    let bench = Bench::new();
    bench.file("a.cs", b"\xef\xbb\xbfusing A;\nx\n");
    let read = bench.ok("Read", json!({"path": "a.cs"})).await;
    assert_eq!(read.text, "1\tusing A;\n2\tx");
    bench.ok("StrReplace", json!({"path": "a.cs", "old_string": "using A;", "new_string": "using B;"})).await;
    assert_eq!(bench.bytes("a.cs"), b"\xef\xbb\xbfusing B;\nx\n");
    let output = bench.ok("Write", json!({"path": "a.cs", "content": "using C;\n"})).await;
    assert_eq!(bench.bytes("a.cs"), b"\xef\xbb\xbfusing C;\n");
    assert!(output.text.contains("byte order mark"), "{}", output.text);
    bench.ok("Write", json!({"path": "a.cs", "content": "\u{feff}using D;\n"})).await;
    assert_eq!(bench.bytes("a.cs"), b"\xef\xbb\xbfusing D;\n");
    check(&[
        one(b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "c\nd", b"\xef\xbb\xbfc\r\nd\r\n"),
        one(b"\xef\xbb\xbfa", "\u{feff}a", "\u{feff}b", b"\xef\xbb\xbfb"),
        one(b"\xef\xbb\xbfa\n", "a\n", "", b"\xef\xbb\xbf"),
        one(b"\xff\xfea\0\n\0", "a", "b\u{e9}", b"\xff\xfeb\0\xe9\0\n\0"),
        one(b"\xfe\xff\0a\0\r\0\n\0b", "a\nb", "a\nc", b"\xfe\xff\0a\0\r\0\n\0c"),
        one(b"\xff\xfe\x3d\xd8\x00\xde!\0", "!", "?", b"\xff\xfe\x3d\xd8\x00\xde?\0"),
        // A mark that is not at the beginning is text.
        one(b"a\xef\xbb\xbfb", "a", "c", b"c\xef\xbb\xbfb"),
        one(b"\xef\xbb\xbf\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbf\xef\xbb\xbfb"),
    ])
    .await;
}

#[tokio::test]
async fn bytes_of_legacy_text_stay_as_they_are() {
    check(&[
        one(b"caf\xe9 au lait\n", "lait", "sucre", b"caf\xe9 au sucre\n"),
        one(b"caf\xe9\n", "caf\u{e9}", "th\u{e9}", b"th\xe9\n"),
        one(b"\x80 5\n", "5", "6", b"\x80 6\n"),
        one(b"\x81\x8d\x8f\x90\x9d x", "x", "y", b"\x81\x8d\x8f\x90\x9d y"),
        // UTF-8 with one stray byte is still UTF-8.
        one("\u{e9}\u{e9}\u{e9} x ".as_bytes(), "x", "\u{fc}", "\u{e9}\u{e9}\u{e9} \u{fc} ".as_bytes()),
        one(b"\xc3\xa9\xc3\xa9\xff x\r\n", "x", "\u{e9}\ny", b"\xc3\xa9\xc3\xa9\xff \xc3\xa9\r\ny\r\n"),
        one(b"a\x1b[0mb\n", "b", "c", b"a\x1b[0mc\n"),
        one(b"tab\there\x0c\n", "here", "there", b"tab\tthere\x0c\n"),
    ])
    .await;
    let bench = Bench::new();
    bench.file("f", b"caf\xe9\n");
    let said = bench.refused("StrReplace", json!({"path": "f", "old_string": "caf", "new_string": "\u{4e2d}"})).await;
    assert!(said.contains("windows-1252") && said.contains("U+4E2D"), "{said}");
    bench.file("u", b"\xff\xfea\0\x00\xd8b\0");
    let said = bench.refused("StrReplace", json!({"path": "u", "old_string": "a", "new_string": "b"})).await;
    assert!(said.contains("not valid UTF-16"), "{said}");
    assert_eq!(bench.bytes("u"), b"\xff\xfea\0\x00\xd8b\0");
}

#[tokio::test]
async fn several_edits_are_made_in_order_or_not_at_all() {
    let bench = Bench::new();
    bench.file("f", "a b c\n");
    let edits = json!([{"old_string": "a", "new_string": "b"}, {"old_string": "b b", "new_string": "x"}]);
    let output = bench.ok("Edit", json!({"path": "f", "edits": edits})).await;
    assert_eq!(bench.bytes("f"), b"x c\n");
    assert_eq!(output.text, "Edited f: +1/-1\n@@ -1 +1 @@\n-a b c\n+x c\n");
    let edits = json!([{"old_string": "x", "new_string": "y"}, {"old_string": "x", "new_string": "z"}]);
    let said = bench.refused("Edit", json!({"path": "f", "edits": edits})).await;
    assert!(said.starts_with("edit 2 of 2 cannot be made, so nothing was changed"), "{said}");
    assert_eq!(bench.bytes("f"), b"x c\n");
    let edits = json!([{"old_string": "x", "new_string": "y"}, {"old_string": "y", "new_string": "x"}]);
    let said = bench.refused("Edit", json!({"path": "f", "edits": edits})).await;
    assert!(said.contains("no change"), "{said}");
    let said = bench.refused("Edit", json!({"path": "f", "edits": []})).await;
    assert!(said.contains("empty"), "{said}");
    assert_eq!(bench.changes().len(), 1);
}

#[tokio::test]
async fn edits_that_cannot_be_made_say_what_to_do() {
    let bench = Bench::new();
    bench.file("f", "text\n");
    bench.file("empty", "");
    bench.file("pic.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    std::fs::create_dir(bench.path("dir")).unwrap();
    for (path, old, expected) in [
        ("f", "", "use Write"),
        ("empty", "", "use Write"),
        ("empty", "x", "the file is empty"),
        ("absent", "x", "use Write for a new file"),
        ("dir", "x", "dir is a folder, not a file"),
        ("pic.png", "IHDR", "pic.png is a PNG image, not a text file"),
    ] {
        let said = bench.refused("StrReplace", json!({"path": path, "old_string": old, "new_string": "y"})).await;
        assert!(said.contains(expected), "{path}: {said}");
    }
    assert_eq!(bench.changes(), []);
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_changed_again() {
    let bench = Bench::new();
    bench.file("f", "one\n");
    bench.ok("Read", json!({"path": "f"})).await;
    bench.file("f", "two\n");
    for (tool, input) in [
        ("StrReplace", json!({"path": "f", "old_string": "two", "new_string": "2"})),
        ("Edit", json!({"path": "./f", "edits": [{"old_string": "two", "new_string": "2"}]})),
        ("Write", json!({"path": bench.path("f"), "content": "three\n"})),
    ] {
        let said = bench.refused(tool, input).await;
        assert!(said.contains("has changed since it was read"), "{tool}: {said}");
    }
    assert_eq!(bench.bytes("f"), b"two\n");
    bench.ok("Read", json!({"path": "f"})).await;
    bench.ok("StrReplace", json!({"path": "f", "old_string": "two", "new_string": "2"})).await;
    // What the session left itself is known to it.
    bench.ok("Write", json!({"path": "f", "content": "three\n"})).await;
    assert_eq!(bench.bytes("f"), b"three\n");
}

#[tokio::test]
async fn two_edits_of_one_file_by_two_spellings_are_both_made() {
    let numbers: String = (1..=100).map(|number| format!("{number}\n")).collect();
    for round in 0..4 {
        let bench = Bench::new();
        bench.file("n.txt", &numbers);
        std::fs::create_dir(bench.path("sub")).unwrap();
        std::os::unix::fs::symlink("n.txt", bench.path("link")).unwrap();
        let absolute = bench.path("n.txt").to_string_lossy().into_owned();
        let spellings = ["n.txt", "./n.txt", &absolute, "sub/../n.txt", "link"];
        if round % 2 == 0 {
            bench.ok("Read", json!({"path": spellings[round]})).await;
        }
        let (first, second) = (spellings[round], spellings[round + 1]);
        bench.ok("StrReplace", json!({"path": first, "old_string": "\n50\n", "new_string": "\nFIFTY\n"})).await;
        bench.ok("StrReplace", json!({"path": second, "old_string": "\n75\n", "new_string": "\nSEVENTYFIVE\n"})).await;
        let expected = numbers.replace("\n50\n", "\nFIFTY\n").replace("\n75\n", "\nSEVENTYFIVE\n");
        assert_eq!(bench.bytes("n.txt"), expected.as_bytes(), "{first} and {second}");
    }
}

#[tokio::test]
async fn a_write_over_a_crlf_file_keeps_crlf_where_the_content_has_only_lf() {
    for (before, content, after) in [
        (&b"a\r\nb\r\n"[..], "c\nd\n", &b"c\r\nd\r\n"[..]),
        (b"a\r\nb", "c\nd", b"c\r\nd"),
        (b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
        (b"a\nb\n", "c\r\nd\r\n", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n"),
        (b"a\r\n", "no line end", b"no line end"),
        (b"a", "c\nd\n", b"c\nd\n"),
        (b"\xef\xbb\xbfa\r\n", "c\nd\n", b"\xef\xbb\xbfc\r\nd\r\n"),
        (b"\xff\xfea\0", "b\n", b"\xff\xfeb\0\n\0"),
        (b"caf\xe9\n", "th\u{e9}\n", b"th\xe9\n"),
        (b"caf\xe9\n", "\u{4e2d}\n", b"\xe4\xb8\xad\n"),
        (b"\0\x01binary", "text\n", b"text\n"),
    ] {
        let bench = Bench::new();
        bench.file("f", before);
        bench.ok("Write", json!({"path": "f", "content": content})).await;
        assert_eq!(bench.bytes("f").escape_ascii().to_string(), after.escape_ascii().to_string(), "{content:?}");
    }
}

#[tokio::test]
async fn the_old_content_is_kept_before_the_new_one_takes_its_place() {
    let bench = Bench::new();
    bench.file("f", "old\n");
    let output = bench.ok("Write", json!({"path": "f", "content": "new\n"})).await;
    bench.ok("Write", json!({"path": "g/h", "content": "made\n"})).await;
    let changes = bench.changes();
    assert_eq!(changes.len(), 2);
    let canonical = std::fs::canonicalize(bench.path("f")).unwrap();
    assert_eq!(changes[0].path, canonical.to_string_lossy());
    assert_eq!(bench.blob(&changes[0].before.as_ref().unwrap().hash).await, b"old\n");
    assert_eq!(changes[0].after.as_deref(), Some(blake3::hash(b"new\n").to_hex().as_str()));
    assert_eq!(changes[1].before, None);
    assert_eq!(output.files[0].hash, changes[0].after.clone().unwrap());
    assert_eq!(output.diffs[0].text, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n");
    assert_eq!((output.diffs[0].added, output.diffs[0].removed), (1, 1));
}

#[tokio::test]
async fn a_write_that_cannot_be_recorded_does_not_happen() {
    let bench = Bench::new();
    bench.file("f", "old\n");
    bench.refuse_records();
    let said = bench.refused("Write", json!({"path": "f", "content": "new\n"})).await;
    assert!(said.contains("the log is full"), "{said}");
    bench.refused("Write", json!({"path": "a/b/c", "content": "new\n"})).await;
    assert_eq!(bench.bytes("f"), b"old\n");
    assert_eq!(bench.names(), ["f"]);
}

#[tokio::test]
async fn a_preview_shows_the_diff_and_changes_nothing() {
    let bench = Bench::new();
    bench.file("f", "one\ntwo\n");
    for (tool, input) in [
        ("StrReplace", json!({"path": "f", "old_string": "two", "new_string": "2"})),
        ("Edit", json!({"path": "f", "edits": [{"old_string": "two", "new_string": "2"}]})),
        ("Write", json!({"path": "f", "content": "one\n2\n"})),
    ] {
        let diffs = super::kit::tool_named(tool).preview(&input, &bench.cx).await.map_err(|f| f.text).unwrap();
        assert_eq!(diffs[0].text, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", "{tool}");
    }
    assert_eq!(bench.bytes("f"), b"one\ntwo\n");
    assert_eq!(bench.changes(), []);
}

#[tokio::test]
async fn files_over_ten_megabytes_are_not_edited() {
    let bench = Bench::new();
    let limit = 10 * 1024 * 1024;
    bench.file("big", vec![b'a'; limit + 1]);
    let mut fits = vec![b'a'; limit - 1];
    fits.push(b'!');
    bench.file("fits", fits);
    for (tool, input) in [
        ("StrReplace", json!({"path": "big", "old_string": "a", "new_string": "b", "replace_all": true})),
        ("Write", json!({"path": "big", "content": "small"})),
    ] {
        let said = bench.refused(tool, input).await;
        assert!(said.contains("10485761 bytes") && said.contains("cannot be edited"), "{tool}: {said}");
    }
    bench.ok("StrReplace", json!({"path": "fits", "old_string": "!", "new_string": "?"})).await;
    assert_eq!(bench.bytes("fits").last(), Some(&b'?'));
}

#[tokio::test]
async fn a_large_diff_is_cut_for_the_model_and_whole_for_people() {
    let bench = Bench::new();
    let lines = |word: &str| -> String { (0..3000).map(|number| format!("{word} {number}\n")).collect() };
    bench.file("f", lines("old"));
    let output = bench.ok("Write", json!({"path": "f", "content": lines("new")})).await;
    assert!(output.text.starts_with("Edited f: +3000/-3000\n@@ -1,3000 +1,3000 @@\n"), "{}", &output.text[..80]);
    assert!(output.text.len() <= 5_000 && output.text.ends_with("… the rest of the diff is not shown\n"));
    assert!(output.diffs[0].text.len() > 50_000 && output.diffs[0].text.ends_with("+new 2999\n"));
    bench.file("wide", "x".repeat(400_000));
    let output = bench.ok("Write", json!({"path": "wide", "content": "y".repeat(400_000)})).await;
    assert!(output.diffs[0].text.len() <= 256 * 1024 && output.text.len() <= 5_000);
}

#[tokio::test]
async fn what_an_edit_means_for_line_ends_alone_is_done() {
    check(&[
        one(b"a\r\nb\r\n", "a\r\n", "a\n", b"a\nb\r\n"),
        one(b"a\nb\n", "a\n", "a\r\n", b"a\r\nb\n"),
        every(b"a\r\nb\r\n", "\r\n", "\n", b"a\nb\n"),
    ])
    .await;
}
