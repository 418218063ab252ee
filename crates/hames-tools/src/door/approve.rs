//! Asking a person, and holding the call to exactly what was shown.

use std::sync::Arc;
use std::time::Duration;

use hames_protocol::{ApprovalAnswered, ApprovalAsked, Decision, Declaration, Diff, Event};
use serde_json::{Value, json};

use super::call::{Job, not_run};
use super::{Stop, emit, scope};
use crate::{PathGrant, Tool, ToolCx, ToolFailure, Touched};

/// How often a person is asked anew because the files changed under the question. After this the call is answered.
const MAX_ASKS: usize = 3;
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

/// Asks until an answer and the files agree. An approval is for what was shown: where that changed meanwhile, the new
/// state is shown and asked about.
pub(super) async fn approve(job: &Job, shown: Shown<'_>, why: &str) -> Result<(), Stop> {
    let mut diffs = preview(job, &shown).await?;
    for _ in 0..MAX_ASKS {
        let digest = digest(&shown, &diffs);
        let decision = ask(job, &shown, why, diffs, &digest).await?;
        if decision == Decision::Deny {
            return Err(ToolFailure::refused(format!(
                "The user declined this call ({why}). Do not repeat it; go on without it, or ask what to do instead."
            ))
            .into());
        }
        diffs = preview(job, &shown).await?;
        let now = scope::resolve_one(&job.fs, shown.declaration).await.map_err(ToolFailure::from)?;
        if let Some(moved) = scope::leads_elsewhere(shown.touched, &now) {
            return Err(ToolFailure::failed(format!("not run: {moved} since it was approved. Call again.")).into());
        }
        if self::digest(&shown, &diffs) == digest {
            remember(job, decision, shown.touched);
            return Ok(());
        }
    }
    Err(ToolFailure::failed("not run: the file kept changing while this call waited for approval. Read it again.")
        .into())
}

async fn ask(job: &Job, shown: &Shown<'_>, why: &str, diffs: Vec<Diff>, digest: &str) -> Result<Decision, Stop> {
    let asked = Event::ApprovalAsked(ApprovalAsked {
        call_id: job.call.event.call_id.clone(),
        label: job.call.event.label.clone(),
        reason: why.to_owned(),
        input: shown.input.clone(),
        diff: joined(diffs),
        digest: digest.to_owned(),
    });
    let Event::ApprovalAsked(asked) = emit::masked(&job.parts.secrets, asked) else {
        return Err(ToolFailure::failed("not run: the approval could not be shown").into());
    };
    job.cx.emit.record(vec![Event::ApprovalAsked(asked.clone())]).await?;
    let answer = tokio::select! {
        biased;
        halt = job.cx.halted() => return Err(not_run(halt).into()),
        answer = job.parts.approver.decide(&asked) => answer,
    };
    let answered = answer.is_some();
    let (decision, by) = answer.unwrap_or_else(|| (Decision::Deny, "nobody".to_owned()));
    let call_id = asked.call_id;
    let event = ApprovalAnswered { call_id, decision, by, digest: digest.to_owned(), grants: Vec::new() };
    job.cx.emit.record(vec![Event::ApprovalAnswered(event)]).await?;
    if answered { Ok(decision) } else { Err(nobody(why).into()) }
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

/// A decision for more than this once becomes a grant for exactly these paths.
fn remember(job: &Job, decision: Decision, touched: &[Touched]) {
    if matches!(decision, Decision::Session | Decision::Folder) {
        let outside = touched.iter().filter(|t| !t.path.inside);
        job.parts.policy().grants.extend(outside.map(|t| PathGrant { path: t.path.abs.clone(), write: t.write }));
    }
}
