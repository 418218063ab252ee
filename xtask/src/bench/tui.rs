//! What the terminal face costs: at a terminal of its own, by what is written there and by what the kernel counts.
//!
//! Time to a first paint is time on the wall. Frames are counted in time the drawing thread had a processor: what a busy
//! machine adds says nothing of the face, and code that another thread colours keeps no frame waiting.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::contender::Contender;
use super::kit::{Kit, Mock};
use super::median;
use super::pty::Screen;
use super::server::{Process, Server, command};
use super::table::limit;

const OPENINGS: usize = 15;
const COLD_OPENINGS: usize = 7;
/// How long a face that nobody touches is watched.
const REST: Duration = Duration::from_secs(10);
/// 400 tokens a second, for ten seconds.
const TOKENS: usize = 4_000;
const TOKEN_US: u64 = 2_500;
/// Messages of the long session: a question and an answer a turn.
const TURNS: usize = 15_000;
const PASTE_BYTES: usize = 5_000_000;
/// Presses of each key while the long session is gone through.
const PRESSES: usize = 40;
const PAGE_UP: &str = "\x1b[5~";
const PAGE_DOWN: &str = "\x1b[6~";
const FOLD_ALL: &str = "\x1b[15~";

/// What the face shows once the server has said which sessions there are.
const OFFERS: &str = "goes on with";
const LAST_ANSWER: &str = "Answer 14999";

/// Measures the face of the contender's home.
pub(super) fn measure(floor: &Contender, hames: &Contender, kit: &Kit, mock: &Mock) -> Result<Value> {
    eprintln!("== face");
    mock.reset(&json!({"scenario": "hello"}))?;
    ensure!(command(hames, &["run", "-s", "small", "go"]).status()?.success(), "no session can be made");
    import(hames)?;
    let cold = (0..COLD_OPENINGS).map(|_| cold_ms(hames)).collect::<Result<Vec<_>>>()?;
    let _server = Server::start(hames)?;
    let warm = (0..OPENINGS).map(|_| warm_ms(hames)).collect::<Result<Vec<_>>>()?;
    let part = |all: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| median(all.iter().map(which).collect());
    let mut figures = json!({
        "paint_cold_ms": part(&cold, |ms| ms.0),
        "offer_cold_ms": part(&cold, |ms| ms.1),
        "paint_ms": part(&warm, |ms| ms.0),
        "offer_ms": part(&warm, |ms| ms.1),
    });
    for more in [idle(hames)?, streaming(floor, hames, kit, mock)?, long(hames)?] {
        let (figures, more) =
            (figures.as_object_mut().context("figures")?, more.as_object().context("figures")?.clone());
        figures.extend(more);
    }
    Ok(figures)
}

/// What the face may cost.
pub(super) fn limits(figures: &Value) -> Vec<Value> {
    let of = |what: &str| figures[what].as_f64().unwrap_or(f64::NAN);
    let beyond = of("stream_cpu_percent") - of("stream_floor_cpu_percent");
    vec![
        limit("face, first paint, server up <= 60 ms", of("paint_ms"), 60.0),
        limit("face, sessions shown, server up <= 60 ms", of("offer_ms"), 60.0),
        limit("face, first paint, cold <= 150 ms", of("paint_cold_ms"), 150.0),
        limit("face, sessions shown, cold <= 150 ms", of("offer_cold_ms"), 150.0),
        limit("idle face RSS <= 30 MB", of("idle_rss_mb"), 30.0),
        limit("idle face, wake-ups in 10 s <= 0", of("idle_wakeups"), 0.0),
        limit("idle face CPU <= 0.1 %", of("idle_cpu_percent"), 0.1),
        limit("400 tokens/s, face's CPU beyond the floor's <= 5 % of a core", beyond, 5.0),
        limit("30,000 messages open <= 250 ms", of("long_open_ms"), 250.0),
        limit("slowest frame scrolling them <= 33 ms", of("long_frame_ms"), 33.0),
        limit("slowest frame, 10 MB and 1 MB line <= 33 ms", of("large_frame_ms"), 33.0),
        limit("5 MB paste <= 1,000 ms", of("paste_ms"), 1_000.0),
    ]
}

fn open(hames: &Contender, args: &[&str]) -> Result<Screen> {
    Screen::open(command(hames, args))
}

/// From the start to the first paint, and to the offer of the folder's last session.
fn warm_ms(hames: &Contender) -> Result<(f64, f64)> {
    let begun = Instant::now();
    let mut screen = open(hames, &[])?;
    let paint = screen.until("what is to be done")? - begun;
    let offer = screen.until(OFFERS)? - begun;
    Ok((paint.as_secs_f64() * 1e3, offer.as_secs_f64() * 1e3))
}

fn cold_ms(hames: &Contender) -> Result<(f64, f64)> {
    let _ = command(hames, &["server", "stop", "--now"]).stderr(Stdio::null()).status();
    let ms = warm_ms(hames);
    let _ = command(hames, &["server", "stop", "--now"]).status();
    ms
}

/// A face that shows a session, and that nobody touches.
fn idle(hames: &Contender) -> Result<Value> {
    let mut screen = open(hames, &["-s", "small"])?;
    screen.until("Enter sends")?;
    std::thread::sleep(Duration::from_secs(2));
    let face = Process(screen.pid());
    let (switches, cpu) = (face.switches()?, face.cpu_ns()?);
    std::thread::sleep(REST);
    let busy = (face.cpu_ns()? - cpu) as f64 / 1e9;
    Ok(json!({
        "idle_wakeups": face.switches()? - switches,
        "idle_cpu_percent": busy / REST.as_secs_f64() * 100.0,
        "idle_rss_mb": face.rss_mb()?,
    }))
}

/// An answer that streams: the face's own CPU, beside that of a bare client that only takes the same stream.
fn streaming(floor: &Contender, hames: &Contender, kit: &Kit, mock: &Mock) -> Result<Value> {
    let paced = json!({"scenario": "tokens", "n": TOKENS, "delay_us": TOKEN_US, "tool": "any"});
    let hello = floor.run(kit, mock, &json!({"scenario": "hello"}))?.cpu_s();
    let floor_cpu = floor.run(kit, mock, &paced)?.cpu_s() - hello;
    mock.reset(&paced)?;
    let mut screen = open(hames, &["-s", "streamed"])?;
    screen.until("new session")?;
    let face = Process(screen.pid());
    let (cpu, begun) = (face.cpu_ns()?, Instant::now());
    screen.types("go\r")?;
    screen.until("first token")?;
    let (busy, wall) = ((face.cpu_ns()? - cpu) as f64 / 1e9, begun.elapsed().as_secs_f64());
    ensure!(wall > 8.0, "the answer streamed in {wall} s, which is not 400 tokens a second");
    Ok(json!({
        "stream_cpu_percent": busy / wall * 100.0,
        "stream_floor_cpu_percent": floor_cpu / wall * 100.0,
        "stream_seconds": wall,
        "stream_rss_mb": face.rss_mb()?,
    }))
}

/// Long sessions, large outputs and a large paste.
fn long(hames: &Contender) -> Result<Value> {
    let begun = Instant::now();
    let mut screen = open(hames, &["-s", "long"])?;
    let opened = screen.until(LAST_ANSWER)? - begun;
    let scrolled = frames(&mut screen, &[PAGE_UP, PAGE_DOWN])?;
    let scrolled_rss_mb = Process(screen.pid()).rss_mb()?;
    drop(screen);
    let mut screen = open(hames, &["-s", "large"])?;
    screen.until("the end of it")?;
    // Folded, then open.
    let mut large = frames(&mut screen, &[PAGE_UP, PAGE_DOWN])?;
    large.extend(frames(&mut screen, &[FOLD_ALL, PAGE_UP, PAGE_DOWN])?);
    let paste = format!("\x1b[200~{}\x1b[201~", "a line that is pasted, of usual length\n".repeat(PASTE_BYTES / 39));
    let begun = Instant::now();
    screen.types(&paste)?;
    let pasted = screen.until("[pasted")? - begun;
    let slowest = |frames: &[f64]| frames.iter().copied().fold(0.0, f64::max);
    Ok(json!({
        "long_open_ms": opened.as_secs_f64() * 1e3,
        "long_frame_ms": slowest(&scrolled),
        "long_frame_median_ms": median(scrolled),
        "long_rss_mb": scrolled_rss_mb,
        "large_frame_ms": slowest(&large),
        "large_rss_mb": Process(screen.pid()).rss_mb()?,
        "paste_ms": pasted.as_secs_f64() * 1e3,
    }))
}

/// What each key costs the drawing thread until its frame is written, in milliseconds of a processor.
fn frames(screen: &mut Screen, keys: &[&str]) -> Result<Vec<f64>> {
    // What came into sight last may still be drawn.
    screen.settle();
    let face = Process(screen.pid());
    let mut all = Vec::new();
    for key in keys {
        for _ in 0..PRESSES {
            let before = face.main_cpu_ns()?;
            screen.types(key)?;
            // Nothing new to see is an answer too.
            screen.settle();
            all.push((face.main_cpu_ns()? - before) as f64 / 1e6);
        }
    }
    Ok(all)
}

/// Sessions that nobody wants to wait for: made from what a small one exports.
fn import(hames: &Contender) -> Result<()> {
    let output = command(hames, &["sessions", "export", "small"]).stdout(Stdio::piped()).output()?;
    let first: Value = serde_json::from_slice(output.stdout.split(|b| *b == b'\n').next().unwrap_or_default())
        .context("the small session has no first event")?;
    let question =
        |n: usize| json!({"type": "message.user", "parts": [{"type": "text", "text": format!("Question {n}")}]});
    let answer = |text: String| json!({"type": "text.done", "index": 0, "text": text});
    let turns = (0..TURNS).flat_map(|n| {
        let said = format!("Answer {n}, with `code`.\n\n- one\n- two\n\n```rust\nlet x = {n};\n```\n");
        [question(n), answer(said)]
    });
    import_as(hames, "long", &first, turns)?;
    let output = "a line of output that is neither long nor short\n".repeat(210_000);
    let large = [
        question(0),
        json!({"type": "tool.call", "call_id": "c", "name": "Shell", "arguments": "{}", "label": {"tool": "Shell"}}),
        json!({"type": "tool.done", "call_id": "c", "name": "Shell", "duration_ms": 1, "output": output}),
        answer("word ".repeat(200_000)),
        answer("the end of it".into()),
    ];
    import_as(hames, "large", &first, large.into_iter())
}

fn import_as(hames: &Contender, name: &str, first: &Value, events: impl Iterator<Item = Value>) -> Result<()> {
    let path = hames.home().join(format!("{name}.jsonl"));
    let mut file = std::io::BufWriter::new(fs::File::create(&path)?);
    writeln!(file, "{first}")?;
    for (at, event) in events.enumerate() {
        let mut envelope = first.clone();
        envelope["seq"] = json!(at + 2);
        envelope["event"] = event;
        writeln!(file, "{envelope}")?;
    }
    file.flush()?;
    let import = ["sessions", "import", "--name", name, &path.to_string_lossy()].map(str::to_owned);
    run(command(hames, &import.iter().map(String::as_str).collect::<Vec<_>>()), &path)
}

fn run(mut import: Command, path: &Path) -> Result<()> {
    ensure!(import.status()?.success(), "{} cannot be imported", path.display());
    Ok(())
}
