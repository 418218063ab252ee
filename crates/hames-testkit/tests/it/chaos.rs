//! Made-up runs: the same from the same seed, complete in their faults, and over in the end.

use std::{
    io,
    sync::{Arc, Mutex},
};

use hames_testkit::{
    Provider, Script, blocking,
    chaos::{Chaos, ChaosCounts, Fault, IN_A_ROW},
};
use serde_json::{Value, json};

use crate::client::{Client, End, Response};

fn serve(chaos: Chaos) -> (Provider, Arc<Mutex<Chaos>>) {
    let chaos = Arc::new(Mutex::new(chaos));
    let script = Script::new().respond({
        let chaos = Arc::clone(&chaos);
        move |request| chaos.lock().unwrap().turn(request)
    });
    (blocking(script).unwrap(), chaos)
}

/// The smallest client that copes: it asks again after a fault, and sends back nothing a strict provider refuses.
struct Agent {
    provider: Provider,
    client: Option<Client>,
    messages: Vec<Value>,
    calls: usize,
    failed_in_a_row: usize,
    most_in_a_row: usize,
}

impl Agent {
    fn new(provider: Provider) -> Agent {
        Agent { provider, client: None, messages: vec![user()], calls: 0, failed_in_a_row: 0, most_in_a_row: 0 }
    }

    fn request(&self) -> Value {
        let tool =
            |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
        json!({"model": "m", "tools": [tool("Read"), tool("Shell"), tool("StrReplace")], "messages": self.messages,
            "stream": true, "stream_options": {"include_usage": true}})
    }

    /// One request; the text where the turn is an end.
    fn step(&mut self) -> Option<String> {
        let body = self.request().to_string();
        let client = self.client.get_or_insert_with(|| Client::to(&self.provider));
        client.post(&body);
        let response = client.response();
        if !matches!(&response, Ok(Response { end: End::Complete, .. })) {
            self.client = None;
        }
        let Some(response) = usable(response) else {
            self.failed_in_a_row += 1;
            self.most_in_a_row = self.most_in_a_row.max(self.failed_in_a_row);
            return None;
        };
        self.failed_in_a_row = 0;
        let deltas = response.deltas();
        let text: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
        let calls = deltas.iter().filter(|delta| delta["tool_calls"][0]["type"] == "function").count();
        if calls == 0 {
            self.messages
                .push(json!({"role": "assistant", "content": if text.is_empty() { "nothing" } else { &text }}));
            self.messages.push(user());
            return Some(text);
        }
        let ids: Vec<_> = (self.calls..self.calls + calls).map(|n| format!("own_{n}")).collect();
        self.calls += calls;
        let function = json!({"name": "Read", "arguments": "{}"});
        let call = |id: &String| json!({"id": id, "type": "function", "function": function});
        let asked = ids.iter().map(call).collect::<Vec<_>>();
        self.messages.push(json!({"role": "assistant", "content": null, "tool_calls": asked}));
        self.messages.extend(ids.iter().map(|id| json!({"role": "tool", "tool_call_id": id, "content": "ok"})));
        None
    }
}

fn user() -> Value {
    json!({"role": "user", "content": "go on"})
}

fn usable(response: io::Result<Response>) -> Option<Response> {
    let response = response.ok()?;
    let whole = response.status == 200 && response.end == End::Complete;
    (whole && response.events().iter().all(|event| event.get("error").is_none())).then_some(response)
}

#[test]
fn a_run_of_chaos_breaks_no_rule_of_its_own_and_comes_to_an_end() {
    let limit = 800;
    let (provider, chaos) = serve(Chaos::new(3).steps(limit));
    let mut agent = Agent::new(provider);
    for _ in 0..limit {
        assert_ne!(agent.step().as_deref(), Some("Done after 800 turns."));
        // Long histories would only make this slow.
        let last_user = agent.messages.iter().rposition(|message| message["role"] == "user").unwrap();
        agent.messages.drain(..if agent.messages.len() > 60 { last_user } else { 0 });
        if agent.messages.len() > 120 {
            agent.messages = vec![user()];
        }
    }
    assert_eq!(agent.step().as_deref(), Some("Done after 800 turns."));
    assert_eq!(agent.provider.violations(), []);
    assert_eq!(agent.most_in_a_row, IN_A_ROW);
    let counts = chaos.lock().unwrap().counts().clone();
    for fault in Fault::ALL {
        assert!(counts.of(fault) >= 4, "{fault:?} came {} times", counts.of(fault));
    }
    assert!(counts.parallel > 80 && counts.signed > 40, "{counts:?}");
    assert_eq!((counts.turns, counts.ends), (limit + 1, 1));
    assert!((limit / 4..limit / 2).contains(&counts.faults()), "{counts:?}");
}

fn counts_of(chaos: Chaos) -> ChaosCounts {
    let (provider, chaos) = serve(chaos.steps(60));
    let mut agent = Agent::new(provider);
    for _ in 0..60 {
        agent.step();
    }
    chaos.lock().unwrap().counts().clone()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    assert_eq!(counts_of(Chaos::new(1)), counts_of(Chaos::new(1)));
    assert_ne!(counts_of(Chaos::new(1)), counts_of(Chaos::new(2)));
}

#[test]
fn faults_left_out_do_not_come() {
    let calm = Fault::ALL.into_iter().fold(Chaos::new(5), Chaos::without);
    assert_eq!(counts_of(calm).faults(), 0);
    let counts = counts_of(Chaos::new(5).without(Fault::CutStream));
    assert!(counts.of(Fault::CutStream) == 0 && counts.faults() > 0);
}

#[test]
fn a_broken_stream_is_always_broken_before_its_end() {
    let only =
        |fault: Fault| Fault::ALL.into_iter().filter(|other| *other != fault).fold(Chaos::new(9), Chaos::without);
    for fault in [Fault::CutStream, Fault::ResetStream] {
        let (provider, chaos) = serve(only(fault).steps(120));
        let mut agent = Agent::new(provider);
        let mut failed = 0;
        for _ in 0..120 {
            agent.messages = vec![user()];
            agent.step();
            failed += usize::from(agent.failed_in_a_row > 0);
            assert!(agent.client.is_some() || agent.failed_in_a_row > 0, "a whole answer came before the break");
        }
        assert_eq!(failed, chaos.lock().unwrap().counts().of(fault));
    }
}
