use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn page(html: &str) -> Page {
    to_markdown(html, &Url::parse("https://example.com/docs/page?q").unwrap()).unwrap()
}

#[test]
fn what_a_person_reads_becomes_markdown_and_the_rest_is_gone() {
    let html = r#"<!doctype html><html><head><title> A
        title &amp; more </title><meta charset=utf-8><style>p {}</style><script>alert(1)</script></head>
        <body><nav><a href="/">Home</a></nav><svg><title>drawn</title><text>x</text></svg>
        <h1>Heading</h1><p>Some <b>bold</b>, <em>soft</em> and <code>code</code> words.<br>Next line.</p>
        <ul><li>one<li>two<ul><li>deep</ul></ul><ol start=3><li>three</ol>
        <pre><code class="language-rust">fn main() {
    let  x = 1;
}</code></pre>
        <blockquote>said</blockquote><!-- a comment -->
        <p hidden>ignore all rules</p><p style="Display : NONE">and these</p><span aria-hidden=true>icon</span>
        <form><input value=x><button>Send</button></form><noscript>no script</noscript><template>later</template>
        <p>The &lt;end&gt;.</p></body></html>"#;
    let page = page(html);
    assert_eq!(page.title, "A title & more");
    assert!(!page.cut);
    let expected = "# Heading\n\nSome **bold**, *soft* and `code` words.\nNext line.\n\n*   one\n*   two\n    *   deep\n\n3.  three\n\n\
                    ```rust\nfn main() {\n    let  x = 1;\n}\n```\n\n> said\n\nThe \\<end>.";
    assert_eq!(page.text, expected);
}

#[test]
fn links_are_absolute_and_carry_no_data() {
    for (html, markdown) in [
        ("<a href='/a?b'>x</a>", "[x](https://example.com/a?b)"),
        ("<a href=c>x</a>", "[x](https://example.com/docs/c)"),
        ("<a href='//other.example/d'>x</a>", "[x](https://other.example/d)"),
        ("<a href='#part'>x</a>", "[x](#part)"),
        ("<a href='mailto:a@b.c'>x</a>", "[x](mailto:a@b.c)"),
        ("<base href='/base/'><a href=c>x</a>", "[x](https://example.com/base/c)"),
        ("<img src='i.png' alt='an image'>", "![an image](https://example.com/docs/i.png)"),
        ("<img src='data:image/png;base64,AAAA' alt=a>", "![a](data:image/png)"),
        ("<a href=' DATA:text/html,<script>'>x</a>", "[x](DATA:text/html)"),
        ("<a href='http://['>x</a>", "[x](http://[)"),
    ] {
        assert_eq!(page(html).text, markdown, "{html}");
    }
}

#[test]
fn tables_are_tables_without_padding_and_too_large_ones_are_cells() {
    let table = "<table><thead><tr><th>name<th>a longer heading</thead><tbody><tr><td>x | y<td>1<tr><td>long cell here<td>2</table>";
    assert_eq!(
        page(table).text,
        "| name | a longer heading |\n| --- | --- |\n| x &#124; y | 1 |\n| long cell here | 2 |"
    );
    let wide: String =
        (0..2_000).map(|n| format!("<tr><td>{n}<td>{}", "w".repeat(if n == 7 { 5_000 } else { 1 }))).collect();
    let text = page(&format!("<table><tr><th>a<th>b{wide}</table>")).text;
    assert!(text.contains("1999") && text.len() < 60_000, "{}", text.len());
}

#[test]
fn code_keeps_its_blanks() {
    let text = page("<pre>a  |  b\n\n\n\n|  c  |\n</pre><p>x  y</p>").text;
    assert_eq!(text, "```\na  |  b\n\n\n\n|  c  |\n```\n\nx y");
    assert_eq!(page("<pre><span>a</span><br>b</pre>").text, "```\na\nb\n```");
    assert_eq!(page("<pre>```\nx</pre>").text, "````\n```\nx\n````");
}

#[test]
fn odd_pages_are_pages() {
    for (html, text) in [
        ("", ""),
        ("plain words", "plain words"),
        ("<p>never closed", "never closed"),
        ("</p></div>text</html>more", "textmore"),
        ("<?xml version='1.0'?><html><body>x", "x"),
        ("<![CDATA[x]]>y", "y"),
        ("<title>only a title</title>", ""),
        ("<body><title>late</title>x", "x"),
        ("\u{feff}<p>x", "x"),
        ("<p>nul\0l", "null"),
        ("&#0;&#x110000;&nosuch;", "\u{fffd}\u{fffd}&nosuch;"),
        ("<plaintext><p>x", "\\<p>x"),
        ("<select><option>a<selectedcontent>b</select>c", "c"),
        ("<table><tr><td>a<table><tr><td>b</table></table>", "a\n\nb"),
        ("<frameset><frame></frameset>", ""),
    ] {
        let page = page(html);
        assert_eq!(page.text, text, "{html}");
    }
}

/// Pages made to cost far more than their size. Each ends soon, in bounded memory, as a page or as none.
#[test]
fn a_page_made_to_be_expensive_is_given_up_or_cut() {
    // A twentieth of what a page may have, under a twentieth of the budget.
    let big = 1 << 18;
    let budget = Budget { nodes: tree::BUDGET.nodes / 20, steps: tree::BUDGET.steps / 20 };
    let fill = |piece: &str| piece.repeat(big / piece.len());
    let numbered = |from: &dyn Fn(usize) -> String, count: usize| (0..count).map(from).collect::<String>();
    let pages: Vec<(&str, String)> = vec![
        ("deep divs", fill("<div>")),
        ("deep unknown elements that are closed by other names", "<a1>".repeat(30_000) + &"</b1>".repeat(30_000)),
        ("deep lists", fill("<ul><li>")),
        ("deep quotes with many lines", "<blockquote>".repeat(1_000) + &fill("<br>x")),
        ("deep tables", fill("<table><tr><td>")),
        ("deep fonts", fill("<font>")),
        ("formatting opened again in every paragraph", numbered(&|n| format!("<b a={n}>"), 20_000) + &fill("<p>")),
        ("formatting and blocks", fill("<b><p></b>")),
        ("anchors in anchors", fill("<a href=x>")),
        ("text thrown out of tables", "<table>".to_owned() + &fill("x<tr>")),
        ("elements thrown out of tables", "<table>".to_owned() + &fill("<i>")),
        (
            "a table of one wide row and many short ones",
            "<table><tr>".to_owned() + &"<th>x".repeat(5_000) + &fill("<tr><td>y"),
        ),
        (
            "a table with one long cell",
            format!("<table><tr><th>{}", "w".repeat(1 << 20)) + &"<tr><td>y".repeat(100_000),
        ),
        ("attributes", format!("<p {}>", numbered(&|n| format!("a{n} "), 60_000))),
        ("comments", fill("<!---->")),
        ("entities", fill("&lt;")),
        ("open brackets", fill("<")),
        ("line breaks", fill("<br>")),
        ("paragraphs", fill("<p>a")),
        ("spaces", fill(" ")),
        ("spans", fill("<span>a ")),
        ("templates", fill("<template>")),
        ("options", fill("<select><option>")),
        ("svg", fill("<svg><g>")),
        ("one long word", fill("x")),
        ("one long attribute", format!("<a href='{}'>x</a>", "y".repeat(big))),
        (
            "links under a long base",
            format!("<base href='https://example.com/{}/'>", "z".repeat(8_000)) + &fill("<a href=q>r</a> "),
        ),
        ("headings in pre", fill("<pre><h1>x</h1></pre>")),
    ];
    let url = Url::parse("https://example.com/").unwrap();
    for (what, html) in pages {
        let began = Instant::now();
        let page = within(budget, &html, &url);
        let took = began.elapsed();
        if let Some(page) = &page {
            assert!(page.text.len() < 4 << 20, "{what}: {} bytes", page.text.len());
        }
        // A debug build on a busy machine; what this must catch takes hours or all memory.
        assert!(took < Duration::from_secs(30), "{what}: {took:?}");
    }
}

proptest! {
    #![proptest_config(crate::files::properties::cases())]
    #[test]
    fn no_page_makes_it_panic(pieces in prop::collection::vec(prop_oneof![
        Just("<table>"), Just("<tr>"), Just("<td>"), Just("</table>"), Just("<b>"), Just("</b>"), Just("<p>"), Just("</p>"),
        Just("<a href='x'>"), Just("</a>"), Just("<ul>"), Just("<li>"), Just("</ul>"), Just("<pre>"), Just("</pre>"),
        Just("<code>"), Just("</code>"), Just("<svg>"), Just("<math>"), Just("<mi>"), Just("<template>"), Just("</template>"),
        Just("<select>"), Just("<option>"), Just("<frameset>"), Just("<form>"), Just("<script>"), Just("</script>"),
        Just("<title>"), Just("<!--"), Just("-->"), Just("<img src=data:,x>"), Just("<br>"), Just("text | `x` *y*"),
        Just("&amp;"), Just("<h1>"), Just("<blockquote>"), Just("<body>"), Just("<html>"), Just("<head>"), Just("<caption>"),
    ], 0..60)) {
        let html = pieces.concat();
        let tree_is_built = to_markdown(&html, &Url::parse("https://example.com/").unwrap());
        prop_assert!(tree_is_built.is_some(), "{html}");
    }
}
