//! Running a tool under cancel and a time limit.

use std::time::Duration;

use hames_protocol::{Effect, ToolErrorClass};
use tokio::task::JoinHandle;

use super::call::{Halt, Job, Running, crashed};
use crate::policy::true_effect;
use crate::{ToolFailure, ToolOutput, Whole};

/// What a tool gets beyond its own time limit: it should notice first, and then its answer is the better one.
const TIMEOUT_GRACE: Duration = Duration::from_secs(5);
/// What a cancelled tool gets to stop. After this its call is answered without it.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Why a running tool was told to stop.
#[derive(Clone, Copy)]
enum Why {
    Halt(Halt),
    Timeout(u64),
}

impl Why {
    fn class(self) -> ToolErrorClass {
        match self {
            Why::Halt(_) => ToolErrorClass::Cancelled,
            Why::Timeout(_) => ToolErrorClass::Timeout,
        }
    }

    fn text(self) -> String {
        match self {
            Why::Halt(Halt::Abort) => "the run was stopped".into(),
            Why::Halt(Halt::Interrupt) => "the user added a message".into(),
            Why::Timeout(ms) => format!("it took longer than {} s", ms.div_ceil(1000)),
        }
    }
}

type Answer = Result<ToolOutput, ToolFailure>;

/// Runs the tool in a task of its own: its panic is its own, and it is never dropped in the middle of an effect.
pub(super) async fn execute(job: &Job, running: Running<'_>) -> Answer {
    let Running { tool, input, declaration, tool_cx, ticket } = running;
    let effect = true_effect(declaration);
    let cancel = tool_cx.cancel.clone();
    // What changes files keeps its place in the order for as long as it is at work, even given up.
    let keeps_place = matches!(effect, Effect::Edit | Effect::Run);
    let held = keeps_place.then(|| ticket.clone());
    let mut task = tokio::spawn({
        let (tool, input) = (tool.clone(), input.clone());
        async move {
            let answer = tool.run(&input, &tool_cx).await;
            drop(held);
            answer
        }
    });

    let why = tokio::select! {
        biased;
        answer = &mut task => return joined(tool.spec().name.as_str(), answer),
        why = told_to_stop(job, effect, declaration.timeout_ms) => why,
    };
    cancel.cancel();
    let name = tool.spec().name.as_str();
    match stopped(&mut task, name).await {
        Some(answer) => answer.map_err(|failure| explained(failure, name, why)),
        None => {
            if keeps_place {
                ticket.give_up();
            }
            Err(given_up(name, effect, why))
        }
    }
}

/// Returns when the tool has to be cancelled.
async fn told_to_stop(job: &Job, effect: Effect, timeout_ms: Option<u64>) -> Why {
    let out_of_time = async {
        match timeout_ms {
            Some(ms) => {
                tokio::time::sleep(Duration::from_millis(ms).saturating_add(TIMEOUT_GRACE)).await;
                Why::Timeout(ms)
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = job.cx.abort.cancelled() => Why::Halt(Halt::Abort),
        // A message cuts only what leaves no trace.
        () = job.cx.interrupt.cancelled(), if effect == Effect::Read => Why::Halt(Halt::Interrupt),
        why = out_of_time => why,
    }
}

async fn stopped(task: &mut JoinHandle<Answer>, name: &str) -> Option<Answer> {
    tokio::time::timeout(STOP_GRACE, task).await.ok().map(|answer| joined(name, answer))
}

fn joined(name: &str, answer: Result<Answer, tokio::task::JoinError>) -> Answer {
    answer.unwrap_or_else(|crash| {
        let how = match crash.try_into_panic() {
            Ok(panic) => panic
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "panic".into()),
            Err(_) => "it was ended from outside".into(),
        };
        Err(crashed(name, &how))
    })
}

/// A tool only knows that it was cancelled; the model should know why.
fn explained(failure: ToolFailure, name: &str, why: Why) -> ToolFailure {
    if failure.class != ToolErrorClass::Cancelled {
        return failure;
    }
    let text = format!("{name} was stopped: {}. {}", why.text(), failure.text);
    ToolFailure { class: why.class(), text: text.trim_end().to_owned(), whole: failure.whole }
}

fn given_up(name: &str, effect: Effect, why: Why) -> ToolFailure {
    let consequence = match effect {
        Effect::Read | Effect::Session => "",
        Effect::Edit | Effect::Run | Effect::External => {
            " What it has done is unknown and it may still be at work: look before you do it again."
        }
    };
    let text =
        format!("{name} was told to stop ({}) and did not within {} s.{consequence}", why.text(), STOP_GRACE.as_secs());
    ToolFailure { class: why.class(), text, whole: Whole::None }
}
