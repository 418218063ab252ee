//! The actions, their names for the configuration, what they do for `?`, and the keys they come with.

use std::str::FromStr;

use super::KeymapError;

macro_rules! actions {
    ($( $variant:ident = $name:literal, $does:literal $(, $key:literal)*; )*) => {
        /// What a key can mean.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $( #[doc = $does] $variant, )*
        }
        /// Every action with its name and what it does, in the order `?` shows them.
        pub(super) const ALL: &[(Action, &str, &str)] = &[ $( (Action::$variant, $name, $does), )* ];
        /// The keys the actions come with.
        pub(super) const DEFAULTS: &[(&str, Action)] = &[ $( $( ($key, Action::$variant), )* )* ];
    };
}

actions! {
    Submit = "submit", "send the message; while the agent works it is heard at once, and the model starts anew around it", "enter";
    Queue = "queue", "send it once the agent is done", "alt+enter";
    Steer = "steer", "put it in at the agent's next step, cutting nothing", "ctrl+s", "ctrl+enter";
    NewLine = "new-line", "a new line in the prompt", "shift+enter", "ctrl+j";
    Abort = "abort", "stop what the agent does; once more offers to stop background work too", "esc";
    Interrupt = "interrupt", "stop the agent, else clear the prompt, else (twice) leave", "ctrl+c";
    Leave = "leave", "leave where the prompt is empty; sessions go on", "ctrl+d";
    Help = "help", "the keys", "f1";
    Sessions = "sessions", "choose a session", "ctrl+o";
    New = "new", "a new session", "ctrl+n";
    Models = "models", "choose a model", "ctrl+l";
    Mode = "mode", "Analyze or Build, from the next run on", "shift+tab";
    Decide = "decide", "what waits for your decision", "f8";
    Settings = "settings", "settings of the session", "f2";
    Changes = "changes", "proposed changes", "ctrl+g";
    Context = "context", "what the model is sent", "f3";
    Todos = "todos", "the todo list", "ctrl+t";
    Output = "output", "the whole output of a call", "f7";
    Search = "search", "search all sessions", "ctrl+r";
    Find = "find", "find in the conversation", "ctrl+f";
    Editor = "editor", "write the message in your editor", "ctrl+e";
    PasteImage = "paste-image", "attach the image in the clipboard", "ctrl+v";
    Pending = "pending", "go to the messages that wait", "ctrl+q";
    Copy = "copy", "copy what is selected, else the last answer", "alt+c";
    Select = "select", "select in the conversation by keys", "f4";
    Fold = "fold", "open or close the block under the marker, else the last one", "ctrl+b";
    FoldAll = "fold-all", "open or close all blocks", "f5";
    PageUp = "page-up", "a page up", "pageup";
    PageDown = "page-down", "a page down", "pagedown";
    ToTop = "to-top", "to the beginning of the conversation", "ctrl+home";
    ToEnd = "to-end", "to its end, and follow it", "ctrl+end";
    Previous = "previous", "the message or the row before", "up", "ctrl+p";
    Next = "next", "the message or the row after", "down";
    Undo = "undo", "take back the last change of the prompt", "ctrl+_", "alt+u", "ctrl+/", "ctrl+shift+-";
    Redo = "redo", "make it again", "alt+shift+u", "ctrl+shift+z";
    LineStart = "line-start", "to the beginning of the line", "ctrl+a";
    LineEnd = "line-end", "to the end of the line", "alt+a";
    WordLeft = "word-left", "a word back", "alt+b", "ctrl+left", "alt+left";
    WordRight = "word-right", "a word on", "alt+f", "ctrl+right", "alt+right";
    DeleteBack = "delete-back", "delete the character before the cursor", "ctrl+h";
    KillWord = "kill-word", "delete the word before the cursor", "ctrl+w", "alt+backspace", "ctrl+backspace";
    KillWordAhead = "kill-word-ahead", "delete the word behind the cursor", "alt+d", "ctrl+delete";
    KillToStart = "kill-to-start", "delete to the beginning of the line", "ctrl+u";
    KillToEnd = "kill-to-end", "delete to the end of the line", "ctrl+k";
    Yank = "yank", "put back what was deleted last", "ctrl+y";
    YankOlder = "yank-older", "the deletion before that instead", "alt+y";
    SelectAll = "select-all", "select the whole prompt", "alt+s";
    History = "history", "search what was sent before from this folder", "alt+r";
    ExpandPaste = "expand-paste", "open the paste at the cursor", "alt+o";
    Mouse = "mouse", "leave the mouse to the terminal, so that it selects by itself, or take it back", "f6";
    Suspend = "suspend", "give the terminal back until `fg`", "ctrl+z";
    Redraw = "redraw", "draw everything anew", "f12";
}

impl Action {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(action, ..)| *action == self).map_or("", |(_, name, _)| name)
    }

    /// What it does, for a person.
    pub fn does(self) -> &'static str {
        ALL.iter().find(|(action, ..)| *action == self).map_or("", |(.., does)| does)
    }
}

impl FromStr for Action {
    type Err = KeymapError;
    fn from_str(text: &str) -> Result<Self, KeymapError> {
        if let Some((action, ..)) = ALL.iter().find(|(_, name, _)| *name == text) {
            return Ok(*action);
        }
        let near = ALL.iter().map(|(_, name, _)| (strsim::osa_distance(name, text), *name)).min();
        let near = near.filter(|(distance, _)| *distance <= 2).map(|(_, name)| name);
        Err(KeymapError::NoAction { given: text.to_owned(), near })
    }
}
