//! Reading a todo list as models write it, and writing it as models read it.

use std::collections::HashSet;

use hames_protocol::{Todo, TodoPriority, TodoStatus};
use serde_json::Value;

/// Entries of a list: more is a document, not a list.
const MAX_ENTRIES: usize = 200;

/// Characters of one entry.
pub(super) const MAX_CONTENT: usize = 2000;

/// Characters of an entry where the reader has just written it.
pub(super) const SHORT: usize = 60;

/// Characters of an id.
const MAX_ID: usize = 40;

/// An entry as written, before it has an id of its own.
struct Entry {
    id: Option<String>,
    content: String,
    status: TodoStatus,
    priority: TodoPriority,
}

/// Reads a list. Entries keep their ids; one without an id gets that of the `known` entry with the same content, or a
/// small number that no other entry, old or new, has.
pub(super) fn read(todos: Option<&Value>, known: &[Todo]) -> Result<Vec<Todo>, String> {
    let items = todos.and_then(Value::as_array).ok_or("todos must be a list of {content, status}")?;
    if items.len() > MAX_ENTRIES {
        return Err(format!("{} todos are too many; at most {MAX_ENTRIES} can be kept, so merge some", items.len()));
    }
    let entries = items
        .iter()
        .zip(1..)
        .map(|(item, ordinal)| entry(item).map_err(|reason| format!("todo {ordinal}: {reason}")))
        .collect::<Result<Vec<Entry>, String>>()?;

    // Of entries that claim one id the first has it.
    let mut taken: HashSet<String> = HashSet::new();
    let claims: Vec<Option<String>> =
        entries.iter().map(|entry| entry.id.clone().filter(|id| taken.insert(id.clone()))).collect();
    let old: HashSet<&str> = known.iter().map(|todo| todo.id.as_str()).collect();
    let mut todos = Vec::with_capacity(entries.len());
    for (entry, claim) in entries.into_iter().zip(claims) {
        let id = claim.unwrap_or_else(|| {
            let same = known.iter().find(|todo| todo.content == entry.content && !taken.contains(&todo.id));
            let id = same.map_or_else(|| free_id(&taken, &old), |todo| todo.id.clone());
            taken.insert(id.clone());
            id
        });
        todos.push(Todo { id, content: entry.content, status: entry.status, priority: entry.priority });
    }
    Ok(todos)
}

fn free_id(taken: &HashSet<String>, old: &HashSet<&str>) -> String {
    let mut number = 1_u32;
    loop {
        let id = number.to_string();
        if !taken.contains(&id) && !old.contains(id.as_str()) {
            return id;
        }
        number += 1;
    }
}

fn entry(item: &Value) -> Result<Entry, String> {
    // A bare text is an entry of which nothing else is known.
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let content = item.as_str().map(str::trim).or_else(|| text("content")).filter(|text| !text.is_empty());
    let content = content.ok_or("content is missing or blank")?;
    let length = content.chars().count();
    if length > MAX_CONTENT {
        return Err(format!("content has {length} characters; at most {MAX_CONTENT} can be kept"));
    }
    let id = match item.get("id") {
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => text("id").map(str::to_owned),
    };
    if id.as_ref().is_some_and(|id| id.chars().count() > MAX_ID) {
        return Err(format!("id is longer than {MAX_ID} characters; leave it out to get a number"));
    }
    Ok(Entry {
        id,
        content: content.to_owned(),
        status: text("status").map_or(Ok(TodoStatus::Pending), status)?,
        priority: text("priority").map_or(Ok(TodoPriority::Medium), priority)?,
    })
}

/// The word with case, blanks and dashes levelled.
fn level(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, ' ' | '-' | '_')).flat_map(char::to_lowercase).collect()
}

fn status(word: &str) -> Result<TodoStatus, String> {
    match level(word).as_str() {
        "pending" | "todo" | "open" | "notstarted" | "queued" => Ok(TodoStatus::Pending),
        "inprogress" | "active" | "doing" | "started" | "current" | "working" => Ok(TodoStatus::InProgress),
        "completed" | "complete" | "done" | "finished" => Ok(TodoStatus::Completed),
        "cancelled" | "canceled" | "skipped" | "dropped" => Ok(TodoStatus::Cancelled),
        _ => Err(format!("status \"{word}\" is unknown; use pending, in_progress, completed or cancelled")),
    }
}

fn priority(word: &str) -> Result<TodoPriority, String> {
    match level(word).as_str() {
        "high" | "urgent" | "critical" => Ok(TodoPriority::High),
        "medium" | "normal" | "default" => Ok(TodoPriority::Medium),
        "low" => Ok(TodoPriority::Low),
        _ => Err(format!("priority \"{word}\" is unknown; use high, medium or low")),
    }
}

/// The list, one entry a line, each cut to `width` characters and shorter where `cap` bytes would not hold them all.
pub(super) fn render(todos: &[Todo], width: usize, cap: usize) -> String {
    if todos.is_empty() {
        return "The todo list is empty.".into();
    }
    let at = |width: usize| todos.iter().map(|todo| line(todo, width)).collect::<Vec<_>>().join("\n");
    let widths = [width, 400, 100, 30].into_iter().filter(|w| *w <= width);
    let mut text = String::new();
    for width in widths {
        text = at(width);
        if text.len() <= cap {
            break;
        }
    }
    text
}

fn line(todo: &Todo, width: usize) -> String {
    let mark = match todo.status {
        TodoStatus::Pending => ' ',
        TodoStatus::InProgress => '>',
        TodoStatus::Completed => 'x',
        TodoStatus::Cancelled => '-',
    };
    let priority = match todo.priority {
        TodoPriority::High => " (high)",
        TodoPriority::Medium => "",
        TodoPriority::Low => " (low)",
    };
    // Line ends inside an entry would look like entries.
    let flat = todo.content.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" / ");
    let content = match flat.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    };
    format!("{} [{mark}] {content}{priority}", todo.id)
}
