//! Clients that are cut off or killed at random moments, against the log of the server; and three clients of one session.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hames_client::{Client, EventStream, News, Socket};
use hames_protocol::{Delivery, Envelope, Event, Item, Mode, OpenKind, SessionId, StepSnapshot, Transcript};
use hames_testkit::{ChatRequest, Gate, Script, Turn};
use serde_json::{Value, json};

use super::proxy::Proxy;
use super::{Server, client, log, message, session, wait};
use crate::crash::dice::{Dice, report, seed, size};
use crate::kit::User;

/// Bytes a connection carries at most before it is cut: several events, a snapshot among them.
const REACH: u64 = 6_000;
/// Events a client sees at most before it is killed.
const LIFE: u64 = 25;
/// What a client in a process of its own is told: home, session and the last seq it has.
const FOLLOW: &str = "HAMES_TEST_FOLLOW";

/// Every prompt is answered with a lot of words, a command, and words again.
fn story() -> Script {
    Script::new().respond(|request: &ChatRequest| {
        let messages = request.messages();
        let from = messages.iter().rposition(|message| message["role"] == "user").unwrap();
        let pace = Duration::from_millis(1);
        match messages[from..].iter().filter(|message| message["role"] == "assistant").count() {
            0 => Turn::text("Let me think — äöü — about that for a while. ".repeat(6))
                .then_call("Shell", json!({"command": "echo one; echo two"}))
                .chunk_chars(9)
                .delay_per_chunk(pace),
            _ => Turn::text("It is done, and that is all there is to say. ".repeat(4))
                .chunk_chars(7)
                .delay_per_chunk(pace),
        }
    })
}

/// What a face holds: the log, and the text of each step that is open, which has to agree with it.
#[derive(Default)]
struct Screen {
    log: Vec<Value>,
    transcript: Transcript,
    open: BTreeMap<(Vec<String>, u32), String>,
    losses: usize,
}

impl Screen {
    fn last_seq(&self) -> u64 {
        self.log.last().map_or(0, |line| line["seq"].as_u64().unwrap())
    }

    fn take(&mut self, envelope: Envelope) {
        if let Some(seq) = envelope.seq {
            assert_eq!(seq, self.last_seq() + 1, "missing or doubled: {envelope:?}");
            self.log.push(serde_json::to_value(&envelope).unwrap());
            self.transcript.apply_at(seq, &envelope.event);
        }
        let agent = envelope.agent;
        match envelope.event {
            Event::StepStart(_) | Event::StepDone(_) => self.open.retain(|(whose, _), _| *whose != agent),
            Event::StepSnapshot(StepSnapshot { blocks }) => {
                self.open.retain(|(whose, _), _| *whose != agent);
                let texts = blocks.into_iter().filter(|block| block.kind == OpenKind::Text);
                self.open.extend(texts.map(|block| ((agent.clone(), block.index), block.text)));
            }
            Event::TextDelta(delta) => {
                let open = self.open.entry((agent, delta.index)).or_default();
                assert_eq!(usize::try_from(delta.offset).unwrap(), open.len(), "a piece is missing or comes twice");
                open.push_str(&delta.text);
            }
            // Where the connection was away for the end of the step, the log has the rest.
            Event::TextDone(done) => {
                let open = self.open.get(&(agent, done.index)).map_or("", String::as_str);
                assert!(done.text.starts_with(open), "{open:?} is no beginning of {:?}", done.text);
            }
            _ => {}
        }
    }

    /// Reads on until this client has the log up to `seq`.
    async fn read_to(&mut self, news: &mut EventStream, seq: u64) {
        while self.last_seq() < seq {
            match news.next().await.unwrap() {
                News::Event(envelope) => self.take(*envelope),
                News::Lost { .. } => self.losses += 1,
                News::Connected => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn said(&self) -> Vec<Item> {
        self.transcript.items().iter().map(|item| item.as_ref().clone()).collect()
    }
}

/// Keeps the session at work until it is told to stop; gives the seq at which it has come to rest.
async fn keep_busy(client: &Client, id: &SessionId, enough: &AtomicBool) -> u64 {
    let mut sent = 0;
    while !enough.load(Ordering::SeqCst) {
        if client.pending(id).await.unwrap().pending.len() < 2 {
            sent += 1;
            message(client, id, &format!("message {sent}"), Delivery::Queue).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    loop {
        let view = client.session(id).await.unwrap();
        if view.run.is_none() && view.pending.is_empty() {
            return view.row.last_seq;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn clients_that_are_cut_off_or_killed_miss_nothing_and_see_nothing_twice() {
    println!("HAMES_SEED={}", seed());
    let wanted = size(25, 500);
    let (user, provider) = User::with(story());
    let server = Server::start(&user, &[]);
    let id = wait(async { session(&client(&user).await, &user.project(), "s", Mode::Build).await });
    let proxy = Proxy::breaking(&user, Dice::new(0xc075), wanted, REACH);
    let direct = Client::new(Arc::new(Socket::unix([Proxy::behind(&user)])));
    let through = Client::new(Arc::new(Socket::unix([user.home().join("run/server.sock")])));
    let enough = AtomicBool::new(false);
    let (cut, killed, last) = std::thread::scope(|scope| {
        let killing = scope.spawn(|| kill_again_and_again(&user, &id, wanted));
        let cutting = scope.spawn(|| {
            let mut screen = Screen::default();
            runtime().block_on(async {
                let mut news = through.events(&id, 0);
                while proxy.cuts() < wanted {
                    let seq = screen.last_seq() + 1;
                    screen.read_to(&mut news, seq).await;
                }
            });
            screen
        });
        let feeding = scope.spawn(|| runtime().block_on(keep_busy(&direct, &id, &enough)));
        let (cut, killed) = (cutting.join(), killing.join());
        enough.store(true, Ordering::SeqCst);
        (cut.unwrap(), killed.unwrap(), feeding.join().unwrap())
    });
    let log = log(&user, "s").json();
    assert_eq!(log.len() as u64, last);
    let mut counts = Vec::new();
    for (name, mut screen) in [("cut", cut), ("killed", killed)] {
        // The last one reads to the end.
        wait(async {
            let mut news = direct.events(&id, screen.last_seq());
            screen.open.clear();
            screen.read_to(&mut news, last).await;
        });
        assert_eq!(screen.log, log, "{name}");
        assert!(screen.open.is_empty(), "{name}");
        counts.push(screen.losses);
    }
    assert_eq!(provider.violations(), []);
    drop(server);
    let counts = json!({"cuts": proxy.cuts(), "losses": counts[0], "kills": wanted, "events": last});
    println!("{}", report(&json!({"name": "client_cuts", "seed": seed(), "counts": counts})));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client in a process of its own, killed after a while, then another one that goes on behind what the first had; so
/// many times.
fn kill_again_and_again(user: &User, id: &SessionId, times: usize) -> Screen {
    let (mut dice, mut screen) = (Dice::new(0x711e), Screen::default());
    for _ in 0..times {
        let task = json!([Proxy::behind(user), id, screen.last_seq()]);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server::cuts::helper_follows", "--ignored", "--nocapture"])
            .env(FOLLOW, task.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // A client that comes in the middle of a step begins with what there is of it.
        screen.open.clear();
        let (life, mut seen, mut line) = (dice.below(LIFE), 0, String::new());
        // What it had printed when it died counts; of a line that is torn nobody knows.
        while lines.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            if let Some(event) = line.strip_prefix("NEWS ") {
                screen.take(serde_json::from_str(event).unwrap());
                seen += 1;
            }
            if seen == life {
                child.kill().unwrap();
            }
            line.clear();
        }
        let _ = child.kill();
        child.wait().unwrap();
    }
    screen
}

#[test]
#[ignore = "a process started by clients_that_are_cut_off_or_killed_miss_nothing_and_see_nothing_twice"]
fn helper_follows() {
    let Some(task) = std::env::var_os(FOLLOW) else { return };
    let (socket, id, after): (std::path::PathBuf, SessionId, u64) =
        serde_json::from_str(task.to_str().unwrap()).unwrap();
    // The test's own name stands in the line so far.
    println!();
    runtime().block_on(async {
        let mut news = Client::new(Arc::new(Socket::unix([socket]))).events(&id, after);
        // Until it is killed.
        while let Some(found) = news.next().await {
            if let News::Event(envelope) = found {
                println!("NEWS {}", serde_json::to_string(&envelope).unwrap());
            }
        }
    });
}

#[test]
fn three_clients_of_one_session_end_with_the_same_one_of_them_from_the_middle_of_a_step() {
    let (middle, end) = (Gate::new(), Gate::new());
    let words = "One two three four five six seven eight nine ten. ".repeat(6);
    let script = Script::new()
        .turn(
            Turn::text(words.clone())
                .then_call("Shell", json!({"command": "echo one"}))
                .chunk_chars(10)
                .gate(8, middle.clone())
                .gate(20, end.clone()),
        )
        .turn(Turn::text("It is done."))
        .turn(Turn::text("And again."));
    let (user, provider) = User::with(script);
    let _server = Server::start(&user, &[]);
    let id = wait(async { session(&client(&user).await, &user.project(), "s", Mode::Build).await });
    let proxy = Proxy::before(&user);
    let direct = Client::new(Arc::new(Socket::unix([Proxy::behind(&user)])));
    let screens = wait(async {
        let mut streams = [direct.events(&id, 0), client(&user).await.events(&id, 0)];
        let mut screens = [Screen::default(), Screen::default()];
        for (screen, news) in screens.iter_mut().zip(&mut streams) {
            screen.read_to(news, 1).await;
        }
        message(&direct, &id, "go", Delivery::Queue).await;
        let shown = |screen: &Screen| screen.open.values().map(String::len).sum::<usize>();
        let see = async |screen: &mut Screen, news: &mut EventStream, bytes: usize| {
            while shown(screen) < bytes {
                match news.next().await.unwrap() {
                    News::Event(envelope) => screen.take(*envelope),
                    News::Lost { .. } => screen.losses += 1,
                    News::Connected => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        for (screen, news) in screens.iter_mut().zip(&mut streams) {
            see(screen, news, 50).await;
        }
        // The second is cut off in the middle of the step, and a third one comes.
        proxy.cut();
        let (mut third, mut late) = (Screen::default(), direct.events(&id, 0));
        see(&mut third, &mut late, 50).await;
        middle.open();
        for (screen, news) in screens.iter_mut().zip(&mut streams) {
            see(screen, news, 150).await;
        }
        see(&mut third, &mut late, 150).await;
        end.open();
        message(&direct, &id, "again", Delivery::Queue).await;
        let last = loop {
            let view = direct.session(&id).await.unwrap();
            if view.run.is_none() && view.pending.is_empty() {
                break view.row.last_seq;
            }
            tokio::task::yield_now().await;
        };
        for (screen, news) in screens.iter_mut().zip(&mut streams) {
            screen.read_to(news, last).await;
        }
        third.read_to(&mut late, last).await;
        let [first, second] = screens;
        [first, second, third]
    });
    let log = log(&user, "s").json();
    let [first, second, third] = &screens;
    assert_eq!(second.losses, 1);
    for screen in [first, second, third] {
        assert_eq!(screen.log, log);
        assert_eq!(screen.said(), first.said());
    }
    let answers = first.said().iter().filter(|item| matches!(item, Item::Assistant(_))).count();
    assert_eq!((answers, provider.violations().len()), (3, 0));
}
