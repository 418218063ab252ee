use super::kit::Bench;
use hames_tools::*;
use serde_json::json;
use std::time::Instant;

#[tokio::test]
async fn scratch_costs() {
    let bench = Bench::new();
    std::fs::create_dir(bench.beside("home")).unwrap();
    for i in 0..5000 { bench.file(&format!("a/b/c{}/f{i}", i % 50), "hello\n"); }
    let t = Instant::now();
    let mut n = 0; let mut paths = vec![];
    bench.fs.walk(&bench.fs.resolve(".").unwrap(), &WalkOptions::default(), &mut |e| { n += 1; if e.kind == FileKind::File { paths.push(e.path) } std::ops::ControlFlow::Continue(()) }).unwrap();
    println!("walk {n}: {:?}", t.elapsed());
    let t = Instant::now();
    for p in &paths { bench.fs.open(p).unwrap(); }
    println!("open 5000: {:?}", t.elapsed());
    let t = Instant::now();
    for p in &paths { std::fs::File::open(&p.abs).unwrap(); }
    println!("std open 5000: {:?}", t.elapsed());
    let t = Instant::now();
    for p in &paths { bench.fs.resolve(&p.shown).unwrap(); }
    println!("resolve 5000: {:?}", t.elapsed());
    let t = Instant::now();
    for i in 0..50 { bench.ok("Write", json!({"path": format!("new{i}"), "content": "x"})).await; }
    println!("50 writes: {:?}", t.elapsed());
    let t = Instant::now();
    for i in 0..50 { bench.ok("StrReplace", json!({"path": format!("new{i}"), "old_string": "x", "new_string":"y"})).await; }
    println!("50 edits: {:?}", t.elapsed());
    let big: String = (0..200_000).map(|i| format!("this is line number {i} of it\n")).collect();
    bench.file("big", &big[..(10<<20).min(big.len())]);
    bench.file("bigcrlf", big.replace('\n', "\r\n")[..(10<<20).min(big.len())].as_bytes());
    for f in ["big", "bigcrlf"] {
    let t = Instant::now();
    bench.ok("StrReplace", json!({"path": f, "old_string": "number 100000 of it\nthis is", "new_string":"y"})).await;
    println!("big edit: {:?}", t.elapsed());
    let t = Instant::now();
    bench.refused("StrReplace", json!({"path": f, "old_string": "number 100000 off it\nthis is", "new_string":"y"})).await;
    println!("big miss: {:?}", t.elapsed());
    let t = Instant::now();
    bench.ok("StrReplace", json!({"path": f, "old_string": "number", "new_string":"NUM\nBER", "replace_all": true})).await;
    println!("big all: {:?}", t.elapsed());
    let t = Instant::now();
    bench.ok("Read", json!({"path": f, "offset": 1000, "limit":3})).await;
    println!("big read: {:?}", t.elapsed());
    }
    bench.file("as", "a\n".repeat(5<<20));
    let t = Instant::now();
    bench.refused("StrReplace", json!({"path": "as", "old_string": format!("{}b", "a\n".repeat(1000)), "new_string":"y"})).await;
    println!("pathological miss: {:?}", t.elapsed());
    let t = Instant::now();
    bench.refused("StrReplace", json!({"path": "as", "old_string": format!("{}", "a\n".repeat(1000)), "new_string":"y"})).await;
    println!("pathological ambiguous: {:?}", t.elapsed());
    let t = Instant::now();
    bench.ok("Write", json!({"path": "as", "content": "b\n".repeat(1<<20)})).await;
    println!("replace all lines: {:?}", t.elapsed());
}
