//! Asking a person, and holding the call to exactly what was shown.

use std::sync::Arc;
use std::time::Duration;

use hames_protocol::{ApprovalAnswered, ApprovalAsked, Decision, Declaration, Diff, Event, Grant};
use serde_json::{Value, json};

use super::call::{Job, not_run};
use super::{Stop, emit, scope};
use crate::{Question, Tool, ToolCx, ToolFailure, Touched, Verdict};

/// How often a person is asked anew because the files changed under the question. After this the call is answered.
const MAX_ASKS: usize = 3;
/// What keeping a grant may take: a database that another process holds is waited for, a broken one is not.
const KEEP_LIMIT: Duration = Duration::from_secs(35);
/// What a preview may take; it only reads.
const PREVIEW_LIMIT: Duration = Duration::from_secs(30);

/// A call as it is shown.
pub(super) struct Shown<'a> {
    pub(super) tool: &'a Arc<dyn Tool>,
    pub(super) input: &'a Value,
    pub(super) declaration: &'a Declaration,
    pub(super) touched: &'a [Touched],
    pub(super) cx: &'a ToolCx,
}

/// What the model is told where nobody can be asked.
pub(super) fn nobody(why: &str) -> ToolFailure {
    ToolFailure::refused(format!(
        "Refused: {why}. That needs a person's approval and nobody can answer here. Stay inside the workspace, or say in \
         your answer what is needed."
    ))
}

/// Asks where the call needs a decision, until an answer and the files agree. An approval is for what was shown: where
/// that changed meanwhile, the new state is shown and asked about, and only an answer that holds grants anything.
pub(super) async fn approve(job: &Job, shown: Shown<'_>) -> Result<(), Stop> {
    if job.verdict(shown.declaration, shown.touched) == Verdict::Allow {
        return Ok(());
    }
    let _turn = tokio::select! {
        biased;
        halt = job.cx.halted() => return Err(not_run(halt).into()),
        turn = job.parts.asking.lock() => turn,
    };
    // Whoever was asked before may have allowed this too.
    let question = match job.verdict(shown.declaration, shown.touched) {
        Verdict::Allow => return Ok(()),
        Verdict::Deny(why) => return Err(ToolFailure::refused(why).into()),
        Verdict::Ask(question) => question,
    };
    let mut diffs = preview(job, &shown).await?;
    for _ in 0..MAX_ASKS {
        let digest = digest(&shown, &diffs);
        let asked = record_question(job, &shown, &question, diffs, &digest).await?;
        let Some((decision, by)) = answer(job, &asked).await? else {
            record_answer(job, &asked, (Decision::Deny, "nobody".into()), &[]).await?;
            return Err(nobody(&question.why).into());
        };
        if decision == Decision::Deny {
            record_answer(job, &asked, (decision, by), &[]).await?;
            return Err(declined(&question.why).into());
        }
        diffs = preview(job, &shown).await?;
        let now = scope::resolve_one(&job.fs, shown.declaration).await;
        let moved = match &now {
            Ok(now) => scope::leads_elsewhere(shown.touched, now),
            Err(error) => Some(error.to_string()),
        };
        let holds = moved.is_none() && self::digest(&shown, &diffs) == digest;
        let granted: &[Grant] = if holds { &asked.grants } else { &[] };
        record_answer(job, &asked, (decision, by), granted).await?;
        now.map_err(ToolFailure::from)?;
        if let Some(moved) = moved {
            return Err(ToolFailure::failed(format!("not run: {moved} since it was approved. Call again.")).into());
        }
        if holds {
            return Ok(());
        }
    }
    Err(ToolFailure::failed("not run: the file kept changing while this call waited for approval. Read it again.")
        .into())
}

fn declined(why: &str) -> ToolFailure {
    ToolFailure::refused(format!(
        "The user declined this call ({why}). Do not repeat it; go on without it, or ask what to do instead."
    ))
}

async fn record_question(
    job: &Job,
    shown: &Shown<'_>,
    question: &Question,
    diffs: Vec<Diff>,
    digest: &str,
) -> Result<ApprovalAsked, Stop> {
    let asked = Event::ApprovalAsked(ApprovalAsked {
        call_id: job.call.event.call_id.clone(),
        name: shown.tool.spec().name.clone(),
        label: job.call.event.label.clone(),
        reason: question.why.clone(),
        input: shown.input.clone(),
        diff: joined(diffs),
        digest: digest.to_owned(),
        grants: question.grants.clone(),
    });
    let Event::ApprovalAsked(mut asked) = emit::masked(&job.parts.secrets, asked) else {
        return Err(ToolFailure::failed("not run: the approval could not be shown").into());
    };
    // A grant that holds a secret would have to be kept with it.
    if asked.grants != question.grants {
        asked.grants.clear();
    }
    job.cx.emit.record(vec![Event::ApprovalAsked(asked.clone())]).await?;
    Ok(asked)
}

/// Waits for somebody to decide; `None` where nobody does.
async fn answer(job: &Job, asked: &ApprovalAsked) -> Result<Option<(Decision, String)>, Stop> {
    tokio::select! {
        biased;
        halt = job.cx.halted() => Err(not_run(halt).into()),
        answer = job.parts.approver.decide(asked) => Ok(answer),
    }
}

/// Records an answer and, where it is for more than this once, what it grants. A grant that cannot be kept for the
/// folder holds as long as the session, which is said; the call is not held up by it.
async fn record_answer(
    job: &Job,
    asked: &ApprovalAsked,
    (decision, by): (Decision, String),
    granted: &[Grant],
) -> Result<(), Stop> {
    let granted = if matches!(decision, Decision::Session | Decision::Folder) { granted } else { &[] };
    let mut answered = ApprovalAnswered {
        call_id: asked.call_id.clone(),
        decision,
        by,
        digest: asked.digest.clone(),
        grants: granted.to_vec(),
        note: None,
    };
    if decision == Decision::Folder && !granted.is_empty() {
        match keep(job, granted).await {
            Ok(()) => job.parts.folder_grants().extend(granted.iter().cloned()),
            Err(why) => {
                answered.decision = Decision::Session;
                answered.note = Some(format!("it holds for this session only, because it could not be kept: {why}"));
            }
        }
    }
    job.cx.emit.record(vec![Event::ApprovalAnswered(answered)]).await?;
    Ok(())
}

async fn keep(job: &Job, granted: &[Grant]) -> Result<(), String> {
    let Some(keeper) = &job.parts.grants else { return Ok(()) };
    tokio::time::timeout(KEEP_LIMIT, keeper.keep(granted))
        .await
        .map_err(|_| "the store did not answer".to_owned())?
        .map_err(|error| error.to_string())
}

/// The tool's preview, in a task of its own like its run. A preview that fails shows nothing: why it fails may be what
/// only an approval lets the model know, so the tool will say it when it runs.
async fn preview(job: &Job, shown: &Shown<'_>) -> Result<Vec<Diff>, ToolFailure> {
    let (tool, input, cx) = (shown.tool.clone(), shown.input.clone(), shown.cx.clone());
    let mut task = tokio::spawn(async move { tool.preview(&input, &cx).await });
    tokio::select! {
        biased;
        halt = job.cx.halted() => Err(not_run(halt)),
        diffs = &mut task => Ok(diffs.ok().and_then(Result::ok).unwrap_or_default()),
        () = tokio::time::sleep(PREVIEW_LIMIT) => {
            task.abort();
            Ok(Vec::new())
        }
    }
}

/// Binds an answer to what was shown.
fn digest(shown: &Shown<'_>, diffs: &[Diff]) -> String {
    let paths: Vec<_> = shown.touched.iter().map(|t| (t.path.abs.to_string_lossy(), t.write)).collect();
    let all = json!([shown.tool.spec().name, shown.input, paths, diffs]);
    blake3::hash(all.to_string().as_bytes()).to_hex().to_string()
}

/// Several diffs as one, for whoever looks at them.
fn joined(mut diffs: Vec<Diff>) -> Option<Diff> {
    if diffs.len() < 2 {
        return diffs.pop();
    }
    let path = diffs.iter().map(|diff| diff.path.as_str()).collect::<Vec<_>>().join(", ");
    let text = diffs.iter().map(|diff| diff.text.as_str()).collect::<Vec<_>>().join("\n");
    let (added, removed) = diffs.iter().fold((0, 0), |(a, r), diff| (a + diff.added, r + diff.removed));
    Some(Diff { path, text, added, removed })
}
