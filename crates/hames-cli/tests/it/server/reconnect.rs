//! `hames run` through the server, over a connection that breaks.

use std::io::Read;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hames_testkit::{Gate, Script, Turn};
use serde_json::Value;

use super::proxy::Proxy;
use super::{Server, hold};
use crate::kit::{Ended, User, until};

/// What a process has printed so far.
struct Printed {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Printed {
    fn of(child: &mut Child) -> Printed {
        let (mut out, kept) = (child.stdout.take().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let filled = Arc::clone(&kept);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                filled.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Printed { bytes: kept, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// All of it, once the process has ended.
    fn whole(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.bytes.lock().unwrap())).unwrap()
    }
}

/// The answer as a program puts it together from live events.
fn put_together(lines: &str) -> String {
    let mut text = String::new();
    for line in lines.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let event = serde_json::from_str::<Value>(line).unwrap()["event"].take();
        match event["type"].as_str().unwrap() {
            "step.snapshot" => {
                let blocks = event["blocks"].as_array().unwrap();
                text = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            }
            "text.delta" => {
                let at = usize::try_from(event["offset"].as_u64().unwrap()).unwrap();
                assert_eq!(at, text.len(), "a piece is missing or comes twice: {line}");
                text.push_str(event["text"].as_str().unwrap());
            }
            // What was said while nobody was connected, where the step has ended by then.
            "text.done" => {
                let whole = event["text"].as_str().unwrap();
                assert!(whole.starts_with(&text), "{line}");
                text = whole.to_owned();
            }
            _ => {}
        }
    }
    text
}

#[test]
fn a_connection_that_breaks_in_the_middle_of_a_step_costs_and_repeats_no_word() {
    for json in [false, true] {
        let (middle, end) = (Gate::new(), Gate::new());
        let words = "One two three four five six seven eight nine ten. ".repeat(6);
        let script = Script::new()
            .turn(Turn::text("The first is done."))
            .turn(Turn::text(words.clone()).chunk_chars(10).gate(8, middle.clone()).gate(20, end.clone()));
        let (user, provider) = User::with(script);
        user.ok(&["run", "-s", "s", "first"]);
        let _server = Server::start(&user, &[]);
        hold(&user, "s");
        let proxy = Proxy::before(&user);
        let args: &[&str] = if json { &["run", "-s", "s", "--json", "go"] } else { &["run", "-s", "s", "go"] };
        let mut child = user.start(args);
        let printed = Printed::of(&mut child);
        let answer = |text: String| if json { put_together(&text) } else { text };
        until("the first words", || answer(printed.text()).len() >= 50);
        proxy.cut();
        // More is said while nobody is connected, or just is again.
        middle.open();
        until("the words behind the first break", || answer(printed.text()).len() >= 150);
        proxy.cut();
        end.open();
        let ended = Ended::of(child.wait_with_output().unwrap());
        assert_eq!((ended.code, ended.err.matches("connecting again").count()), (0, 2), "{ended:?}");
        let printed = printed.whole();
        assert_eq!(answer(printed.clone()).trim_end(), words.trim_end(), "json: {json}");
        if json {
            let lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.last().unwrap()["event"]["type"], "run.done");
            let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
            assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{seqs:?}");
        }
        assert_eq!((provider.requests().len(), provider.violations().len()), (2, 0));
    }
}
