//! What a person is told of a refusal: what happened and what to do next, naming the key, the file or the command.

use hames_protocol::{ErrorClass, Stated};

use super::{Place, words};

/// What is known when a refusal is put into words.
pub(crate) struct Known<'a> {
    pub(crate) class: ErrorClass,
    /// All the provider's words, in lower case.
    pub(crate) words: &'a str,
    pub(crate) stated: &'a Stated,
    pub(crate) retry_after_ms: Option<u64>,
}

impl Known<'_> {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }
}

impl Place {
    /// What happened, as it follows the provider's name, and what to do next.
    pub(crate) fn explanation(&self, known: &Known<'_>) -> (String, String) {
        use ErrorClass::*;
        let model = &self.model;
        let settings = self.settings();
        match known.class {
            Auth => self.key_refused(known),
            RateLimit => ("limits the rate of requests for now".into(), self.wait(known)),
            Overloaded if known.stated.is_loading => (
                match model.as_str() {
                    // Asked for its list, and for no model in particular.
                    "" => "is still loading its model".into(),
                    model => format!("is still loading its model \"{model}\""),
                },
                "Wait until the server has read it into memory, and try again".into(),
            ),
            Overloaded => ("has no capacity now".into(), self.wait(known)),
            QuotaExhausted => (
                "says the credit or quota is used up".into(),
                match known.retry_after_ms {
                    Some(ms) => format!(
                        "It asks to wait {}; or check the plan and billing there, or use another model",
                        waiting(ms)
                    ),
                    None => "Check the plan and billing there, or use another model with -m PROVIDER/MODEL".into(),
                },
            ),
            ModelNotFound => (format!("does not know the model \"{model}\""), self.other_model(known)),
            InvalidRequestFixable => (
                match &known.stated.parameter {
                    Some(name) => format!("refused the parameter \"{name}\" of the request"),
                    None => "refused one parameter of the request".into(),
                },
                format!("Change {settings} so that it is not sent"),
            ),
            ContentFilter => {
                ("stopped this with its content filter".into(), "Say it differently, or use another model".into())
            }
            RequestExceedsTpm => (
                format!("allows fewer tokens a minute than this one request has{}", sizes(known.stated)),
                "Use a smaller context window, or another model".into(),
            ),
            MaxTokensTooLarge => (
                format!("allows less output than was asked for{}", sizes(known.stated)),
                match known.stated.limit_tokens {
                    Some(limit) => format!("Set max_tokens of {settings} to {limit} or less"),
                    None => format!("Lower max_tokens of {settings}"),
                },
            ),
            ToolUseFailed => {
                ("could not read the model's own tool call".into(), "Try again, or use another model".into())
            }
            WrongBaseUrl => (
                "has no Chat Completions at this address".into(),
                format!("Check base_url of {settings}; most servers want it to end with /v1"),
            ),
            UnsupportedInput => ("cannot take this kind of input".into(), unsupported(known)),
            WireRule => (
                "says the conversation breaks a rule of its format".into(),
                "Start a new session, and please report this as a fault of Hames".into(),
            ),
            ContextOverflow => (
                format!("says the input is larger than the model's window{}", sizes(known.stated)),
                "Start a new session, or use a model with a larger window".into(),
            ),
            Timeout => ("gave up waiting".into(), "Try again".into()),
            ServerError => ("failed".into(), broken(known)),
            _ => ("refused the request".into(), self.set_up(known)),
        }
    }

    /// Where this endpoint's settings are.
    fn settings(&self) -> String {
        self.remedies.settings.clone().unwrap_or_else(|| format!("provider {}", self.name))
    }

    fn key_refused(&self, known: &Known<'_>) -> (String, String) {
        let key = self.remedies.key.as_deref();
        let test = format!("`hames providers test {}` tries it", self.name);
        if known.says(&["country, region", "location is not supported"]) {
            let next = "Use another provider, or a gateway that serves this place";
            return ("does not serve this country or region".into(), next.into());
        }
        if !self.sends_key {
            let next = match key {
                Some(key) => format!("Put one into {key}; {test}"),
                None => format!("Set the provider's api_key, or the variable it is read from; {test}"),
            };
            return ("wants a key, and none was sent".into(), next);
        }
        let next = match key {
            Some(key) => format!("Check the key in {key}; {test}"),
            None => format!("Check the provider's api_key, or the variable it is read from; {test}"),
        };
        ("refused the key".into(), next)
    }

    fn wait(&self, known: &Known<'_>) -> String {
        match known.retry_after_ms.filter(|ms| *ms > 0) {
            Some(ms) => format!("Wait {} and try again, or use another model", waiting(ms)),
            None => "Wait a moment and try again, or use another model".into(),
        }
    }

    fn other_model(&self, known: &Known<'_>) -> String {
        let choose = "list what it has with `hames models`, and choose with -m PROVIDER/MODEL";
        match () {
            () if known.says(&["pulling it first"]) => {
                format!("Fetch it with `ollama pull {}`, or {choose}", self.model)
            }
            () if known.says(&["no models loaded", "no model loaded", "failed to load model", "lms load"]) => {
                format!("Load it in the server (LM Studio: `lms load {}`), or {choose}", self.model)
            }
            () => format!("L{}", &choose[1..]),
        }
    }

    /// The way out where a server was started without what the request needs.
    fn set_up(&self, known: &Known<'_>) -> String {
        let next = if known.says(&["jinja"]) {
            "Start llama-server with --jinja, and with a chat template that knows tools"
        } else if known.says(&["enable-auto-tool-choice", "tool-call-parser"]) {
            "Start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model"
        } else if known.says(&["support tools", "support tool use", "support function"]) {
            "Use a model that can call tools; `hames models` lists what there is"
        } else if known.says(&["support thinking"]) {
            return format!("Set thinking_level of {} to off", self.settings());
        } else if known.says(words::SET_UP_WORDS) {
            "Correct how the model server is started, as its words below say"
        } else {
            return format!("See the provider's own words, and check {}", self.settings());
        };
        next.into()
    }
}

/// What to do where a kind of input is refused.
fn unsupported(known: &Known<'_>) -> String {
    match known.says(&["mmproj"]) {
        true => "Use a model that sees, or start llama-server with the model's --mmproj file",
        false => "Use a model that sees, or set images to false for this one in the configuration",
    }
    .into()
}

/// What to do where a server failed.
fn broken(known: &Known<'_>) -> String {
    match () {
        () if known.says(&["more system memory", "failed to allocate", "unable to load model"]) => {
            "The machine has too little memory for this model: use a smaller one, or a smaller window"
        }
        () if known.says(words::FOR_GOOD_WORDS) => "Load the model again in the server, then try again",
        () => "Try again; if it stays so, use another model",
    }
    .into()
}

/// The numbers a refusal stated, in brackets.
fn sizes(stated: &Stated) -> String {
    match (stated.requested_tokens, stated.limit_tokens) {
        (Some(asked), Some(limit)) => format!(" ({asked} of {limit} tokens)"),
        (None, Some(limit)) => format!(" ({limit} tokens)"),
        (Some(asked), None) => format!(" ({asked} tokens asked for)"),
        (None, None) => String::new(),
    }
}

/// A time to wait, as people say it.
fn waiting(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms.div_ceil(1000)),
        120_000..7_200_000 => format!("{} min", ms.div_ceil(60_000)),
        _ => format!("{} h", ms.div_ceil(3_600_000)),
    }
}
