//! WebFetch against a server of its own on this machine, which has to be allowed for it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use hames_protocol::{BlobStore, Effect, Event, NobodyAnswers, RawCall, Resource, ToolDone, ToolError, ToolErrorClass};
use hames_tools::{
    About, Door, DoorParts, HostPattern, HostRules, LockTable, Policy, Rule, RuleVerdict, RunCx, Secrets, Tool,
    ToolFailure, ToolOutput, ToolSet, Whole,
};
use hames_workspace::recall::Recall;
use hames_workspace::web::{WebFetch, WebOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::files::kit::Bench;
use crate::files::pictures::PNG;

/// What the server does with a connection whose request it has read.
#[derive(Clone)]
enum Answer {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends the first, then the second again and again for as long as somebody reads.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends these bytes and then nothing, and keeps the connection open.
    Silent(Vec<u8>),
}

impl Answer {
    fn page(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::with("200 OK", &[("content-type", content_type)], body)
    }
    fn with(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.as_ref().len()).into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"connection: close\r\n\r\n");
        bytes.extend_from_slice(body.as_ref());
        Answer::Bytes(bytes)
    }
    fn redirect(to: &str) -> Self {
        Self::with("302 Found", &[("location", to)], "")
    }
}

/// A server on loopback that answers by path and keeps the heads of requests.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move { serve(connection, &seen, answer.as_ref()).await });
            }
        });
        Self { address, requests }
    }

    async fn always(answer: Answer) -> Self {
        Self::start(move |_| answer.clone()).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(mut connection: TcpStream, seen: &Mutex<Vec<String>>, answer: &(impl Fn(&str) -> Answer + ?Sized)) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        match connection.read(&mut buffer).await {
            Ok(n) if n > 0 => head.extend_from_slice(&buffer[..n]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    seen.lock().unwrap().push(head);
    match answer(&path) {
        Answer::Bytes(bytes) => {
            let _ = connection.write_all(&bytes).await;
            let _ = connection.shutdown().await;
        }
        Answer::Endless(first, again) => {
            let _ = connection.write_all(&first).await;
            while connection.write_all(&again).await.is_ok() {}
        }
        Answer::Silent(bytes) => {
            let _ = connection.write_all(&bytes).await;
            // Until the other side goes away.
            while connection.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
        }
    }
}

fn allowing(allowed: &[&str]) -> WebFetch {
    let allow = allowed.iter().map(|text| text.parse().unwrap()).collect();
    WebFetch::new(WebOptions { allow, ..WebOptions::default() })
}

async fn fetched_by(tool: &WebFetch, bench: &Bench, url: &str) -> Result<ToolOutput, ToolFailure> {
    tool.run(&json!({ "url": url }), &bench.cx).await
}

async fn fetched(url: &str) -> Result<ToolOutput, ToolFailure> {
    fetched_by(&allowing(&["127.0.0.1"]), &Bench::new(), url).await
}

async fn text(answer: Answer) -> String {
    let server = Server::always(answer).await;
    fetched(&server.url("/p"))
        .await
        .unwrap_or_else(|failure| panic!("{}", failure.text))
        .text
        .replace(&server.url(""), "SERVER")
}

async fn failure(answer: Answer) -> String {
    let server = Server::always(answer).await;
    match fetched(&server.url("/p")).await {
        Ok(output) => panic!("{}", output.text),
        Err(failure) => failure.text.replace(&server.url(""), "SERVER"),
    }
}

#[tokio::test]
async fn a_page_begins_with_title_and_address_and_other_text_comes_as_it_is() {
    let html = "<title>A page</title><h1>Head</h1><p>Words with a <a href=\"/x\">link</a>.<script>no()</script>";
    for (content_type, body, expected) in [
        ("text/html; charset=utf-8", html, "A page\nSERVER/p\n\n# Head\n\nWords with a [link](SERVER/x)."),
        ("application/xhtml+xml", html, "A page\nSERVER/p\n\n# Head\n\nWords with a [link](SERVER/x)."),
        ("", "<!DOCTYPE html><p>told by its beginning", "SERVER/p\n\ntold by its beginning"),
        ("application/octet-stream", "plain\nwords", "SERVER/p\n\nplain\nwords"),
        (
            "text/plain",
            html,
            "SERVER/p\n\n<title>A page</title><h1>Head</h1><p>Words with a <a href=\"/x\">link</a>.<script>no()</script>",
        ),
        ("application/json", "{\"a\": [1, 2]}\n", "SERVER/p\n\n{\"a\": [1, 2]}"),
        ("application/atom+xml", "<feed><entry/></feed>", "SERVER/p\n\n<feed><entry/></feed>"),
        ("text/markdown", "# Title\r\n\r\ntext\r\n", "SERVER/p\n\n# Title\n\ntext"),
        ("text/html", "", "SERVER/p\n\n(no text)"),
        ("text/html", "<script>only()</script>", "SERVER/p\n\n(no text)"),
    ] {
        assert_eq!(text(Answer::page(content_type, body)).await, expected, "{content_type}");
    }
}

#[tokio::test]
async fn a_request_says_nothing_of_whoever_asks() {
    let server = Server::start(|path| match path {
        "/a?q=1" => Answer::with("302 Found", &[("location", "/b"), ("set-cookie", "id=7")], ""),
        _ => Answer::page("text/plain", "ok"),
    })
    .await;
    fetched(&server.url("/a?q=1#part")).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let mut lines: Vec<String> = request.trim_end().lines().skip(1).map(str::to_lowercase).collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "accept-encoding: gzip",
                "accept: text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5",
                &format!("host: {}", server.address),
                &format!("user-agent: hames/{}", env!("CARGO_PKG_VERSION")),
            ]
        );
        assert!(request.starts_with("GET /"));
    }
}

#[tokio::test]
async fn text_is_read_in_the_encoding_it_has() {
    for (content_type, body, expected) in [
        ("text/plain; charset=iso-8859-2", &b"za\xbf\xf3\xb3\xe6"[..], "zażółć"),
        ("text/plain; charset=\"Shift_JIS\"", b"\x82\xb1\x82\xf1", "こん"),
        ("text/plain; charset=utf-16le", b"h\0i\0", "hi"),
        ("text/plain", b"\xff\xfeh\0i\0", "hi"),
        ("text/plain", b"gr\xfc\xdfe", "grüße"),
        ("text/plain", "grüße".as_bytes(), "grüße"),
        ("text/plain; charset=nonsense", "grüße".as_bytes(), "grüße"),
        ("text/plain; charset=utf-8", b"broken \xff byte", "broken \u{fffd} byte"),
        ("text/html", b"<meta charset=windows-1251><p>\xef\xf0\xe8\xe2\xe5\xf2", "привет"),
        ("text/html; charset=utf-8", "<meta charset=windows-1251><p>привет".as_bytes(), "привет"),
        (
            "application/xml",
            b"<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a>\xe9</a>",
            "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a>é</a>",
        ),
    ] {
        let said = text(Answer::page(content_type, body)).await;
        assert_eq!(said, format!("SERVER/p\n\n{expected}"), "{content_type}");
    }
}

#[tokio::test]
async fn control_characters_do_not_get_through() {
    let said = text(Answer::page("text/plain", "a\u{1b}[2Jb\u{1b}]0;title\u{7}c\u{8}\r\nold\rmac\u{9b}31m!")).await;
    assert_eq!(said, "SERVER/p\n\nab\nold\nmac!");
    let said = text(Answer::page("text/html", "<title>a\u{1b}[1m\nb</title><p>x\u{1b}]0;t\u{7}y&#27;[2Jz")).await;
    assert_eq!(said, "a b\nSERVER/p\n\nxy[2Jz");
}

#[tokio::test]
async fn what_is_no_text_is_named_with_type_and_size() {
    for (content_type, body, expected) in [
        ("image/png", PNG, "SERVER/p is of type image/png (73 bytes); only text can be shown"),
        ("application/pdf", b"%PDF-1.7", "SERVER/p is of type application/pdf (8 bytes); only text can be shown"),
        ("application/octet-stream", PNG, "SERVER/p is a PNG image (73 bytes); only text can be shown"),
        (
            "application/octet-stream",
            b"\x7fELF\x02\x01\x01\0",
            "SERVER/p is an ELF program or library (8 bytes); only text can be shown",
        ),
        ("application/x-thing", b"a\0b", "SERVER/p is of type application/x-thing (3 bytes); only text can be shown"),
        ("", b"a\0b", "SERVER/p is no text (3 bytes); only text can be shown"),
        (
            "text/html",
            b"PK\x03\x04\x14\0\0\0",
            "SERVER/p is a ZIP archive (or an office document) (8 bytes); only text can be shown",
        ),
        ("text/plain", b"SQLite format 3\0", "SERVER/p is an SQLite database (16 bytes); only text can be shown"),
        ("video/mp4", b"\0\0\0\x18ftyp", "SERVER/p is of type video/mp4 (8 bytes); only text can be shown"),
    ] {
        assert_eq!(failure(Answer::page(content_type, body)).await, expected);
    }
    // An endless download is left as soon as it is known for none of ours.
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n\r\n".to_vec();
    assert_eq!(
        failure(Answer::Endless(head, vec![0; 4096])).await,
        "SERVER/p is of type application/octet-stream (size unknown); only text can be shown"
    );
}

#[tokio::test]
async fn a_body_without_end_is_cut_at_the_limit_and_says_so() {
    let server = Server::always(Answer::Endless(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec(),
        b"0123456789abcde\n".repeat(4096),
    ))
    .await;
    let output = fetched(&server.url("/p")).await.unwrap();
    assert!(
        output.text.contains("\n(the rest, after 5242880 bytes, is not read)\n\n0123456789abcde\n"),
        "{}",
        &output.text[..200]
    );
    let Whole::Bytes(whole) = output.whole else { panic!() };
    assert!(whole.len() > 5_242_000 && whole.len() < 5_243_200, "{}", whole.len());
    assert!(output.text.len() <= 50_000);
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn packed_pages_are_unpacked_and_bombs_are_cut() {
    let gzip =
        |body: Vec<u8>| Answer::with("200 OK", &[("content-type", "text/plain"), ("content-encoding", "gzip")], body);
    assert_eq!(text(gzip(packed(b"hello"))).await, "SERVER/p\n\nhello");
    let bomb = packed(&vec![b'a'; 200 << 20]);
    assert!(bomb.len() < 2 << 20);
    assert!(text(gzip(bomb)).await.contains("(the rest, after 5242880 bytes, is not read)"));
    let cut = packed(&b"line\n".repeat(1000));
    let said = text(gzip(cut[..cut.len() - 8].to_vec())).await;
    assert!(said.contains("(its end is missing)") && said.contains("line\nline"), "{said}");
    let said = text(gzip(b"this is not packed, whatever the header says".to_vec())).await;
    assert_eq!(said, "SERVER/p\n(the rest cannot be unpacked)\n\n(no text)");
    for coding in ["br", "zstd", "gzip, gzip"] {
        let answer = Answer::with("200 OK", &[("content-type", "text/plain"), ("content-encoding", coding)], "x");
        let expected = format!("SERVER/p came packed as {coding}, which was not asked for; use another source");
        assert_eq!(failure(answer).await, expected);
    }
}

#[tokio::test]
async fn what_does_not_come_in_time_is_given_up() {
    let in_time = |seconds| {
        let allow = vec!["127.0.0.1".parse().unwrap()];
        WebFetch::new(WebOptions { allow, time: Duration::from_secs(seconds), ..WebOptions::default() })
    };
    let server = Server::always(Answer::Silent(Vec::new())).await;
    let failed = fetched_by(&in_time(0), &Bench::new(), &server.url("/p")).await.unwrap_err();
    assert_eq!(failed.text, "127.0.0.1 did not answer within 0 s; try again later, or use another source");
    let begun = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nso far".to_vec();
    let server = Server::always(Answer::Silent(begun)).await;
    let said = fetched_by(&in_time(2), &Bench::new(), &server.url("/p")).await.unwrap().text;
    assert!(said.ends_with("\n(the rest did not come within 2 s)\n\nso far"), "{said}");
}

#[tokio::test]
async fn a_fetch_that_is_cancelled_stops() {
    let server = Server::always(Answer::Silent(b"HTTP/1.1 200 OK\r\n\r\nx".to_vec())).await;
    let bench = Bench::new();
    let cancel = bench.cx.cancel.clone();
    let (tool, url) = (allowing(&["127.0.0.1"]), server.url("/"));
    let (result, ()) = tokio::join!(fetched_by(&tool, &bench, &url), async {
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().class, ToolErrorClass::Cancelled);
}

#[tokio::test]
async fn statuses_that_are_no_success_are_failures_with_their_words() {
    for (status, body, expected) in [
        (
            "404 Not Found",
            "<title>x</title><h1>No such page</h1>",
            "SERVER/p answered 404 Not Found; check the address. It says:\n# No such page",
        ),
        ("404 Not Found", "", "SERVER/p answered 404 Not Found; check the address"),
        (
            "500 Internal Server Error",
            "<p>boom",
            "SERVER/p answered 500 Internal Server Error; try again later, or use another source. It says:\nboom",
        ),
        (
            "429 Too Many Requests",
            "",
            "SERVER/p answered 429 Too Many Requests; try again later, or use another source",
        ),
        (
            "401 Unauthorized",
            "",
            "SERVER/p answered 401 Unauthorized; it wants to know who asks; nothing is sent on anybody's behalf",
        ),
        ("304 Not Modified", "", "SERVER/p answered 304 Not Modified; it names no place to go on"),
        ("302 Found", "", "SERVER/p answered 302 Found; it names no place to go on"),
        ("418 I'm a teapot", "", "SERVER/p answered 418 I'm a teapot; use another source"),
        ("599 Odd", "", "SERVER/p answered 599 no known status; try again later, or use another source"),
    ] {
        assert_eq!(failure(Answer::with(status, &[("content-type", "text/html")], body)).await, expected);
    }
    let said = failure(Answer::with("500 No", &[("content-type", "text/plain")], "é".repeat(100_000))).await;
    assert!(said.len() < 900 && said.ends_with('…'), "{}", said.len());
    assert_eq!(text(Answer::with("204 No Content", &[], "")).await, "SERVER/p\n\n(no text)");
}

#[tokio::test]
async fn broken_answers_are_failures_that_say_what_to_do() {
    for answer in [
        Answer::Bytes(Vec::new()),
        Answer::Bytes(b"not http at all\r\n\r\n".to_vec()),
        Answer::Bytes(b"HTTP/1.1 abc\r\n\r\n".to_vec()),
        Answer::Bytes([&b"HTTP/1.1 200 OK\r\nx: "[..], &b"y".repeat(1 << 20)].concat()),
        Answer::Bytes(b"HTTP/1.1 200 OK\r\n".repeat(300)),
        Answer::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        Answer::Bytes(b"\x16\x03\x01\0\x02".to_vec()),
        Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n".to_vec()),
    ] {
        let said = failure(answer).await;
        assert!(said.starts_with("127.0.0.1 gave no answer that can be read ("), "{said}");
    }
    let short =
        Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 50\r\n\r\nso far".to_vec());
    let said = text(short).await;
    assert!(said.starts_with("SERVER/p\n(the connection broke: ") && said.ends_with("\n\nso far"), "{said}");
    // TLS where there is none, and nobody at all.
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = plain.accept().await {
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let said = fetched(&format!("https://{address}/")).await.unwrap_err().text;
    let no_certificates = said.starts_with("nothing can be fetched: no certificates to trust");
    let no_tls = format!("no connection to 127.0.0.1, port {} (received corrupt message", address.port());
    assert!(no_certificates || said.starts_with(&no_tls), "{said}");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let said = fetched(&format!("http://{free}/")).await.unwrap_err().text;
    assert_eq!(said, format!("nothing listens at 127.0.0.1, port {} (connection refused)", free.port()));
}

#[tokio::test]
async fn redirects_are_followed_five_times_and_shown_where_the_host_changes() {
    let server = Server::start(|path| match path.trim_start_matches('/').parse::<u32>() {
        Ok(0) => Answer::page("text/plain", "there"),
        Ok(n) => Answer::redirect(&format!("/{}", n - 1)),
        Err(_) => Answer::redirect(path),
    })
    .await;
    let said = fetched(&server.url("/5")).await.unwrap().text;
    assert_eq!(said, format!("{}\n\nthere", server.url("/0")));
    assert_eq!(server.requests().len(), 6);
    for path in ["/6", "/loop"] {
        let failed = fetched(&server.url(path)).await.unwrap_err();
        assert!(failed.text.starts_with("more than 5 redirects, the last to "), "{}", failed.text);
    }
    let port = server.address.port();
    let other = Server::start(move |_| Answer::redirect(&format!("http://127.0.0.1:{port}/0"))).await;
    let tool = allowing(&["localhost", "127.0.0.1"]);
    let url = format!("http://localhost:{}/x", other.address.port());
    let said = fetched_by(&tool, &Bench::new(), &url).await.unwrap().text;
    assert_eq!(said, format!("{}\n(redirected from localhost to 127.0.0.1)\n\nthere", server.url("/0")));
}

#[tokio::test]
async fn no_redirect_leads_inside() {
    for (to, expected) in [
        ("http://127.0.0.2/", "127.0.0.2 is a loopback address"),
        ("http://169.254.169.254/latest/meta-data/", "where clouds keep their metadata"),
        ("http://[::1]/", "::1 is a loopback address"),
        ("http://[::ffff:7f00:1]/", "an IPv4 address inside an IPv6 address"),
        ("http://0x7f000002/", "127.0.0.2 is a loopback address"),
        ("http://10.0.0.1/", "10.0.0.1 is a private address"),
        ("file:///etc/passwd", "uses file:, which cannot be fetched"),
        ("http://user:hunter2@example.com/", "holds a user name or a password"),
    ] {
        let server = Server::always(Answer::redirect(to)).await;
        let failed = fetched(&server.url("/")).await.unwrap_err();
        assert!(failed.text.contains(expected), "{to}: {}", failed.text);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn without_being_allowed_nothing_on_this_machine_is_reached() {
    let server = Server::always(Answer::page("text/plain", "secret")).await;
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "0", "localhost."] {
        let url = format!("http://{host}:{port}/");
        let failed = fetched_by(&WebFetch::default(), &Bench::new(), &url).await.unwrap_err();
        assert_eq!(failed.class, ToolErrorClass::Refused, "{host}: {}", failed.text);
        assert!(failed.text.contains("only hosts of the public internet are"), "{}", failed.text);
    }
    // A range lets names through that lead into it, and no others.
    for (allowed, host, reached) in [
        ("127.0.0.0/8", "127.0.0.1", true),
        ("10.0.0.0/8", "127.0.0.1", false),
        ("10.0.0.0/8", "localhost", false),
        ("localhost", "localhost", true),
        ("localhost", "127.0.0.1", false),
    ] {
        let url = format!("http://{host}:{port}/");
        let result = fetched_by(&allowing(&[allowed]), &Bench::new(), &url).await;
        assert_eq!(result.is_ok(), reached, "{allowed} {host}");
    }
    let reached = server.requests().len();
    assert_eq!(reached, 2);
}

#[tokio::test]
async fn a_proxy_is_one_that_is_given_and_looks_names_up_itself() {
    let proxy = Server::always(Answer::page("text/plain", "through the proxy")).await;
    let options = || WebOptions { proxy: Some(proxy.url("")), ..WebOptions::default() };
    let bench = Bench::new();
    let tool = WebFetch::new(options());
    let said = fetched_by(&tool, &bench, "http://example.com/x").await.unwrap().text;
    assert_eq!(said, "http://example.com/x\n\nthrough the proxy");
    assert!(proxy.requests()[0].starts_with("GET http://example.com/x HTTP/1.1\r\n"), "{:?}", proxy.requests());
    // What is written is checked all the same.
    for url in ["http://localhost/", "http://127.0.0.1/", "http://169.254.169.254/", "http://wiki.corp/"] {
        let failed = fetched_by(&tool, &bench, url).await.unwrap_err();
        assert_eq!(failed.class, ToolErrorClass::Refused, "{}", failed.text);
    }
    assert_eq!(proxy.requests().len(), 1);
    let bad = WebFetch::new(WebOptions { proxy: Some("no url".into()), ..WebOptions::default() });
    let failed = fetched_by(&bad, &bench, "http://example.com/").await.unwrap_err();
    assert_eq!(failed.text, "nothing can be fetched: the proxy's address is no URL. Correct or remove it.");
}

#[tokio::test]
async fn rules_about_hosts_hold_for_redirects_too() {
    let server = Server::always(Answer::page("text/plain", "there")).await;
    let to = format!("http://localhost:{}/", server.address.port());
    let first = Server::always(Answer::redirect(&to)).await;
    let mut bench = Bench::new();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    bench.cx.hosts = HostRules::new(move |host| {
        seen.lock().unwrap().push(host.to_owned());
        Err("a rule forbids it".into())
    });
    let tool = allowing(&["127.0.0.1", "localhost"]);
    let failed = fetched_by(&tool, &bench, &first.url("/")).await.unwrap_err();
    assert_eq!(failed.class, ToolErrorClass::Refused);
    assert_eq!(failed.text, format!("{} redirects to {to}: a rule forbids it", first.url("/")));
    assert_eq!((asked.lock().unwrap().clone(), server.requests().len()), (vec!["localhost".to_owned()], 0));
}

#[tokio::test]
async fn a_call_declares_the_host_it_will_speak_to() {
    let tool = WebFetch::default();
    for (url, host) in [
        ("https://Example.com:8443/x", Some("example.com")),
        ("http://0x7f.1/", Some("127.0.0.1")),
        ("http://[::1]:80/", Some("::1")),
        ("http://bücher.example/", Some("xn--bcher-kva.example")),
        ("nonsense", None),
        ("", None),
    ] {
        let declared = tool.declare(&json!({ "url": url }));
        let expected: Vec<_> = host.map(|host| Resource::Host { host: host.into() }).into_iter().collect();
        assert_eq!((declared.effect, declared.resources), (Effect::Read, expected), "{url}");
        assert_eq!(tool.label(&json!({ "url": url })).target, url);
    }
}

/// Runs calls through a door with these rules, and gives their ends.
async fn through_a_door(
    bench: &Bench,
    tool: WebFetch,
    rules: Vec<Rule>,
    calls: &[(&str, serde_json::Value)],
) -> Vec<Event> {
    let door = Door::new(DoorParts {
        tools: ToolSet::new(vec![Arc::new(tool), Arc::new(Recall)]).unwrap(),
        policy: Policy { rules, grants: Vec::new() },
        fs: bench.fs.clone(),
        preview: None,
        shell: bench.cx.shell.clone(),
        blobs: bench.blobs.clone(),
        approver: Arc::new(NobodyAnswers),
        grants: None,
        secrets: Secrets::default(),
        locks: Arc::new(LockTable::new()),
        window_tokens: 200_000,
        parallel_tools: true,
    });
    let mut ends = Vec::new();
    for (name, input) in calls {
        let call = RawCall { id: "c".into(), name: (*name).into(), arguments: input.to_string(), extra: None };
        let cx = RunCx {
            session: bench.cx.session.clone(),
            mode: hames_protocol::Mode::Analyze,
            emit: bench.recorder.clone(),
            state: bench.cx.state.clone(),
            abort: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            memory: None,
            pins: hames_tools::PinRoom::default(),
        };
        door.run(vec![door.admit(call)], cx).await.unwrap();
        ends.push(bench.recorder.events.lock().unwrap().last().cloned().unwrap());
    }
    ends
}

#[tokio::test]
async fn behind_a_door_a_long_page_shows_its_beginning_and_recall_the_rest() {
    let body: String =
        (1..=20_000).fold(String::from("<title>Long</title>"), |all, n| all + &format!("<p>paragraph {n}"));
    let server = Server::always(Answer::page("text/html", body)).await;
    let bench = Bench::new();
    let calls = [
        ("WebFetch", json!({"url": server.url("/long")})),
        ("Recall", json!({"artifact": "out-1", "pattern": "paragraph 19999"})),
    ];
    let ends = through_a_door(&bench, allowing(&["127.0.0.1"]), Vec::new(), &calls).await;
    let Event::ToolDone(ToolDone { output, blob: Some(blob), .. }) = &ends[0] else { panic!("{:?}", ends[0]) };
    assert!(output.starts_with(&format!("Long\n{}\n\nparagraph 1\n\nparagraph 2\n", server.url("/long"))));
    assert!(output.len() <= 24 * 1024 && output.len() > 20_000, "{}", output.len());
    assert!(
        output.contains(" more bytes follow]\n[the whole output is kept as out-1 (")
            && output.ends_with("Recall shows it]")
    );
    let whole = bench.blobs.get(&blob.hash, 0, u64::MAX).await.unwrap();
    assert!(String::from_utf8(whole).unwrap().ends_with("paragraph 20000"));
    let Event::ToolDone(ToolDone { output, blob: None, .. }) = &ends[1] else { panic!("{:?}", ends[1]) };
    assert!(output.contains(": paragraph 19999"), "{output}");
}

#[tokio::test]
async fn behind_a_door_a_denied_host_is_reached_neither_directly_nor_by_redirect() {
    let inner = Server::always(Answer::page("text/plain", "there")).await;
    let to = format!("http://localhost:{}/", inner.address.port());
    let first = Server::always(Answer::redirect(&to)).await;
    for verdict in [RuleVerdict::Deny, RuleVerdict::Ask] {
        let rules = vec![Rule { verdict, about: About::Host(HostPattern::new("localhost").unwrap()) }];
        let calls = [("WebFetch", json!({ "url": to })), ("WebFetch", json!({"url": first.url("/")}))];
        let bench = Bench::new();
        let ends = through_a_door(&bench, allowing(&["127.0.0.1", "localhost"]), rules, &calls).await;
        for end in ends {
            let Event::ToolError(ToolError { class, error, .. }) = end else { panic!("{end:?}") };
            assert_eq!(class, ToolErrorClass::Refused, "{error}");
            assert!(error.contains("localhost"), "{error}");
        }
    }
    assert_eq!(inner.requests(), Vec::<String>::new());
}

#[test]
fn what_the_model_is_told_of_it_is_short() {
    let spec = serde_json::to_string(WebFetch::default().spec()).unwrap();
    assert!(spec.len() <= 300, "{} characters", spec.len());
}
