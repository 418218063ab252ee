//! The words a model is given before anybody speaks. Short, because every request pays for them; fixed for the life of
//! a session, because every change re-reads the whole prefix. What varies stands in a note on the run's user message.

use hames_protocol::Mode;

/// How the agent works, for any model. About 200 tokens.
const SYSTEM: &str = include_str!("system.md");

/// The system text: how to work, then the project's own instructions in the order given, outermost first.
pub fn system_text<'a>(instructions: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = SYSTEM.trim_end().to_owned();
    for (path, content) in instructions {
        text.push_str("\n\n<instructions file=\"");
        text.push_str(&path.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;"));
        text.push_str("\">\n");
        text.push_str(content.trim_end());
        text.push_str("\n</instructions>");
    }
    text
}

/// The note that goes with a run's first message.
pub fn run_note(mode: Mode, folder: &str, today: &str) -> String {
    let rule = match mode {
        Mode::Analyze => "Analyze: look and explain; nothing may be modified",
        Mode::Build => "Build: tools act for real",
    };
    format!("[Mode: {rule}. Folder: {folder}. Date: {today}.]")
}
