//! Which value is in force: flag beats session beats file beats environment.

use hames_agent::{Clock, SystemClock};
use hames_model::Remedies;
use hames_protocol::{CompactionSettings, GuardSettings, ModelInfo, ModelRef, Sampling, Settings, ThinkingLevel};

use super::file::{FileConfig, ModelsDev};
use super::policy::Approve;
use super::presets::{PRESETS, preset};
use super::providers::Provider;
use crate::catalog::discover::{self, Found};
use crate::catalog::shelf::Shelf;
use crate::catalog::{Described, describe};
use crate::env::Env;
use crate::exit::Stop;
use crate::home::Home;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The command line.
    Flag,
    /// The session's own settings.
    Session,
    /// A line of the configuration file.
    File(usize),
    /// A variable.
    Env(String),
    /// What Hames knows of a well-known provider.
    Preset,
    /// A server that was found running on this machine.
    Running(String),
}

/// File and environment, read.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) file: FileConfig,
    /// Those of the file in its order, then those of the environment in the order of preference.
    pub(crate) providers: Vec<Provider>,
    /// What is known of models from before.
    pub(crate) shelf: Shelf,
    /// A server that was found on this machine, where nothing is configured.
    found: Option<Found>,
    /// Ports where one was looked for in vain.
    looked_at: Vec<u16>,
    /// Keys the environment holds, used or not: none may be seen.
    keys: Vec<String>,
}

/// The model of a run and what it is asked with.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) info: ModelInfo,
    /// What is known of the model, and from where.
    pub(crate) described: Described,
    pub(crate) origin: Origin,
    pub(crate) provider: Provider,
    /// From the provider's settings, for runs whose session says nothing.
    pub(crate) thinking_level: Option<ThinkingLevel>,
    /// The same of sampling: the model's own settings over its provider's.
    pub(crate) sampling: Sampling,
    /// The file's loop guard, for what the session leaves open.
    pub(crate) guard: GuardSettings,
    /// How the window is kept where the session says nothing.
    pub(crate) compaction: CompactionSettings,
}

impl Config {
    /// Reads file and environment.
    pub(crate) fn load(home: &Home, env: &Env) -> Result<Config, Stop> {
        let config = Self::from_file(FileConfig::load(&home.config_file())?, env)?;
        let shelf = Shelf::at(home.cache().to_owned());
        let wants_public = config.file.catalog.models_dev != ModelsDev::Off;
        Ok(Config { shelf: if wants_public { shelf } else { shelf.without_public() }, ..config })
    }

    /// Lays the environment under a file.
    pub(crate) fn from_file(file: FileConfig, env: &Env) -> Result<Config, Stop> {
        let mut providers = Vec::new();
        for (name, described) in &file.providers {
            providers.push(Provider::of_file(name, described, env)?);
        }
        for preset in &PRESETS {
            if file.providers.iter().all(|(name, _)| name != preset.name) {
                providers.extend(Provider::of_preset(preset, env)?);
            }
        }
        let mut config =
            Config { file, providers, shelf: Shelf::none(), found: None, looked_at: Vec::new(), keys: Vec::new() };
        config.keys = config.key_vars().iter().filter_map(|var| env.get(var)).map(str::to_owned).collect();
        Ok(config)
    }

    /// A configuration of one endpoint without a key, and of nothing else.
    pub(crate) fn only(name: &str, base_url: &str) -> Config {
        let providers = vec![Provider::at(name, base_url)];
        Config {
            file: FileConfig::default(),
            providers,
            shelf: Shelf::none(),
            found: None,
            looked_at: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Whether neither file nor environment names a model, nor anything that has one.
    pub(crate) fn names_no_model(&self) -> bool {
        self.file.model.is_none() && self.default_model().is_none()
    }

    /// Looks for a model server on this machine where no model is configured, to use it as if it were.
    pub(crate) async fn look_around(&mut self) -> Option<&Found> {
        let ports = discover::ports(&self.file.catalog.local_servers);
        match discover::find(&ports).await {
            Some(found) => {
                self.shelf.keep_list(&found.provider, &found.list, SystemClock.now_ms());
                self.providers.retain(|provider| provider.name != found.provider.name);
                self.providers.push(found.provider.clone());
                self.found = Some(found);
            }
            None => self.looked_at = ports,
        }
        self.found.as_ref()
    }

    /// What becomes of questions where no flag says so.
    pub(crate) fn approve(&self) -> Approve {
        self.file.approve.as_ref().map(|at| at.value).unwrap_or_default()
    }

    /// The model in force and the provider it belongs to.
    pub(crate) fn choose(&self, flag: Option<&ModelRef>, session: Option<&Settings>) -> Result<Chosen, Stop> {
        let of_session = session.and_then(|settings| settings.model.as_ref());
        let (model, origin) = flag
            .map(|model| (model.clone(), Origin::Flag))
            .or_else(|| of_session.map(|model| (model.clone(), Origin::Session)))
            .or_else(|| self.file.model.as_ref().map(|at| (at.value.clone(), Origin::File(at.line))))
            .or_else(|| self.default_model())
            .ok_or_else(|| self.no_model())?;
        let provider = self.provider(&model, &origin)?;
        let session_window = session.and_then(|settings| settings.context_window);
        let described = describe(&provider, &model.id, session_window, &self.shelf);
        let info = described.info(&model);
        let of_model = provider.models.iter().find(|known| known.id == model.id).map(|known| known.sampling);
        let sampling = of_model.unwrap_or_default().or(provider.sampling);
        let guard = self.file.guard.as_ref().map(|at| at.value.clone()).unwrap_or_default();
        Ok(Chosen {
            thinking_level: provider.thinking_level,
            compaction: self.file.compaction.clone(),
            sampling,
            guard,
            info,
            described,
            origin,
            provider,
        })
    }

    /// The default model of the first provider the environment makes; else a file's only model.
    fn default_model(&self) -> Option<(ModelRef, Origin)> {
        let preset = PRESETS.iter().find_map(|preset| {
            let provider = self.providers.iter().find(|p| p.name == preset.name && p.is_ready())?;
            let id = preset.default_model?.to_owned();
            Some((ModelRef { provider: provider.name.clone(), id }, provider.readiness()))
        });
        let found = self.found.as_ref().map(|found| (found.model.clone(), Origin::Running(found.title.clone())));
        preset.or(found).or_else(|| {
            let provider = self.providers.iter().find(|p| p.default_model.is_none() && !p.models.is_empty())?;
            let id = provider.models.first()?.id.clone();
            Some((ModelRef { provider: provider.name.clone(), id }, provider.url_origin.clone()))
        })
    }

    fn provider(&self, model: &ModelRef, origin: &Origin) -> Result<Provider, Stop> {
        let described = self.providers.iter().find(|p| p.name == model.provider).cloned();
        // A server of one's own under its usual name is where such servers are; nothing has to be configured for it.
        let local = || preset(&model.provider).filter(|preset| preset.key_var.is_none()).map(Provider::local);
        let Some(provider) = described.or_else(local) else {
            return Err(self.unknown_provider(model, origin));
        };
        if let Some(var) = &provider.missing_key_var {
            return Err(Stop::configuration(format!(
                "provider {} takes its key from {var}, which is not set; export {var} or put api_key into {}",
                provider.name,
                self.path()
            )));
        }
        if provider.base_url.is_empty() {
            return Err(Stop::configuration(format!(
                "provider {} has no base_url; add one in {}",
                provider.name,
                self.path()
            )));
        }
        Ok(provider)
    }

    fn unknown_provider(&self, model: &ModelRef, origin: &Origin) -> Stop {
        let named = match origin {
            Origin::Flag => "-m names".to_owned(),
            Origin::Session => "this session uses".to_owned(),
            Origin::File(line) => format!("{}:{line} names", self.path()),
            Origin::Env(_) | Origin::Preset | Origin::Running(_) => "the environment names".to_owned(),
        };
        if let Some(var) = preset(&model.provider).and_then(|preset| preset.key_var) {
            return Stop::configuration(format!(
                "{named} provider \"{}\", which has no key; export {var} or describe the provider in {}",
                model.provider,
                self.path()
            ));
        }
        let known: Vec<&str> = self.providers.iter().map(|p| p.name.as_str()).collect();
        let known = if known.is_empty() { "none is configured".into() } else { format!("known: {}", known.join(", ")) };
        let next =
            if *origin == Origin::Session { "choose another with -m" } else { "describe it under \"providers\"" };
        Stop::configuration(format!(
            "{named} provider \"{}\", which is not known ({known}); {next} in {}",
            model.provider,
            self.path()
        ))
    }

    /// What every command says that needs a model and has none.
    fn no_model(&self) -> Stop {
        let looked_for = match discover::looked_for(&self.looked_at) {
            list if list.is_empty() => String::new(),
            list => format!("\nNone runs on this machine now: looked for {list}."),
        };
        let ready: Vec<&str> = self.providers.iter().filter(|p| p.is_ready()).map(|p| p.name.as_str()).collect();
        let choose = match ready.first() {
            None => String::new(),
            Some(name) => format!(
                "\nReady, and only in need of a model: {}. `hames models` lists what they have; -m {name}/MODEL chooses.",
                ready.join(", ")
            ),
        };
        let how = HOW_TO_GET_A_MODEL.replace("{config}", &self.path());
        Stop::configuration(how.replace("{found}", &(looked_for + &choose)))
    }

    fn path(&self) -> String {
        self.file.path.display().to_string()
    }

    /// Where a person changes what a provider is told: for messages.
    pub(crate) fn remedies(&self, provider: &Provider) -> Remedies {
        let settings = format!("providers.{} in {}", provider.name, self.path());
        let key = match provider.key.as_ref().map(|key| &key.origin) {
            Some(Origin::Env(var)) => format!("the variable {var}"),
            Some(Origin::File(line)) => format!("api_key at {}:{line}", self.path()),
            _ => match &provider.missing_key_var {
                Some(var) => format!("the variable {var}"),
                None => format!("api_key of {settings}"),
            },
        };
        Remedies { key: Some(key), settings: Some(settings) }
    }

    /// Values that must never be seen, of every provider.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let own = self.keys.iter().cloned().chain(self.file.web.password());
        self.providers.iter().flat_map(Provider::secrets).chain(own).collect()
    }

    /// Variables that child processes do not get: everything that may hold a key, used or not.
    pub(crate) fn key_vars(&self) -> Vec<String> {
        let mut out: Vec<String> = PRESETS.iter().filter_map(|preset| preset.key_var).map(str::to_owned).collect();
        out.extend(self.providers.iter().flat_map(|provider| provider.key_vars.iter().cloned()));
        out.sort();
        out.dedup();
        out
    }

    /// Where a value came from, in words.
    pub(crate) fn origin_text(&self, origin: &Origin) -> String {
        match origin {
            Origin::Flag => "command line".into(),
            Origin::Session => "session".into(),
            Origin::File(line) => format!("{}:{line}", self.path()),
            Origin::Env(var) => format!("${var}"),
            Origin::Preset => "built in".into(),
            Origin::Running(title) => format!("found running: {title}"),
        }
    }
}

impl Provider {
    /// Whether a request can be sent: its key is there, or its URL says that it is somebody's own server.
    pub(crate) fn is_ready(&self) -> bool {
        !self.base_url.is_empty()
            && self.missing_key_var.is_none()
            && (self.key.is_some() || !self.needs_key || self.url_origin != Origin::Preset)
    }

    fn readiness(&self) -> Origin {
        self.key.as_ref().map_or_else(|| self.url_origin.clone(), |key| key.origin.clone())
    }
}

/// Said by every command that needs a model and has none. `{config}` becomes the file's path.
const HOW_TO_GET_A_MODEL: &str = "\
no model is configured. Any one of these gives you one:
  - a key in the environment:  export OPENAI_API_KEY=…   (or ANTHROPIC_API_KEY, OPENROUTER_API_KEY,
                               GOOGLE_GENERATIVE_AI_API_KEY)
  - a local server:            export OPENAI_BASE_URL=http://127.0.0.1:8080/v1
  - a provider, added step by step:  hames providers add
  - a file, {config}:
      {
        \"model\": \"local/my-model\",
        \"providers\": { \"local\": { \"base_url\": \"http://127.0.0.1:8080/v1\" } }
      }
`hames demo` shows a run without any model.{found}";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(file: &str, vars: &[(&str, &str)]) -> Config {
        let file = FileConfig::parse(Path::new("/h/config.jsonc"), file).unwrap();
        Config::from_file(file, &Env::of(vars)).unwrap()
    }

    fn chosen(file: &str, vars: &[(&str, &str)], flag: Option<&str>, session: Option<&str>) -> Result<String, String> {
        let settings = Settings { model: session.map(|m| m.parse().unwrap()), ..Settings::default() };
        let flag: Option<ModelRef> = flag.map(|m| m.parse().unwrap());
        match config(file, vars).choose(flag.as_ref(), Some(&settings)) {
            Ok(chosen) => Ok(format!("{} @ {}", chosen.info.model, chosen.provider.base_url)),
            Err(Stop::Failed(failure)) => Err(failure.message),
            Err(Stop::OutputClosed) => unreachable!("choosing prints nothing"),
        }
    }

    const FILE: &str =
        r#"{"model": "own/m", "providers": {"own": {"base_url": "http://h/v1"}, "other": {"base_url": "http://o"}}}"#;

    #[test]
    fn flag_beats_session_beats_file_beats_environment() {
        let env = [("OPENAI_API_KEY", "k")];
        let openai = "https://api.openai.com/v1";
        for (file, flag, session, expected) in [
            (FILE, Some("other/f"), Some("openai/s"), "other/f @ http://o".to_owned()),
            (FILE, None, Some("openai/s"), format!("openai/s @ {openai}")),
            (FILE, None, None, "own/m @ http://h/v1".into()),
            ("", None, None, format!("openai/gpt-5.4 @ {openai}")),
            ("", Some("openai/a/b"), None, format!("openai/a/b @ {openai}")),
        ] {
            assert_eq!(chosen(file, &env, flag, session), Ok(expected), "{flag:?} {session:?}");
        }
    }

    #[test]
    fn each_variable_makes_a_ready_provider_and_their_order_is_fixed() {
        let all = [
            ("OPENAI_API_KEY", "openai/gpt-5.4 @ https://api.openai.com/v1"),
            ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5 @ https://api.anthropic.com/v1"),
            ("OPENROUTER_API_KEY", "openrouter/anthropic/claude-sonnet-5 @ https://openrouter.ai/api/v1"),
            (
                "GOOGLE_GENERATIVE_AI_API_KEY",
                "google/gemini-3.7-flash @ https://generativelanguage.googleapis.com/v1beta/openai",
            ),
        ];
        for from in 0..all.len() {
            let vars: Vec<(&str, &str)> = all[from..].iter().map(|(var, _)| (*var, "key")).rev().collect();
            assert_eq!(chosen("", &vars, None, None).as_deref(), Ok(all[from].1));
        }
        let local = [("OPENAI_BASE_URL", "http://127.0.0.1:9")];
        assert_eq!(chosen("", &local, None, None).as_deref(), Ok("openai/gpt-5.4 @ http://127.0.0.1:9"));
        let both = [("OPENAI_BASE_URL", "http://127.0.0.1:9"), ("ANTHROPIC_API_KEY", "k")];
        assert_eq!(chosen("", &both, None, None).as_deref(), Ok("openai/gpt-5.4 @ http://127.0.0.1:9"));
    }

    #[test]
    fn what_the_file_leaves_out_of_a_known_provider_is_known() {
        let file =
            r#"{"providers": {"openai": {"max_tokens": 5, "models": [{"id": "gpt-5.4", "context_window": 9}]}}}"#;
        let config = config(file, &[("OPENAI_API_KEY", "from-env")]);
        let chosen = config.choose(None, None).unwrap();
        assert_eq!(chosen.provider.base_url, "https://api.openai.com/v1");
        assert_eq!(chosen.provider.key.as_ref().map(|k| k.reveal()), Some("from-env"));
        assert_eq!(chosen.provider.max_tokens, Some(5));
        assert_eq!(chosen.info.context_window, 9);
        let file = r#"{"providers": {"openai": {"api_key": "from-file"}}}"#;
        let config = self::config(file, &[("OPENAI_API_KEY", "from-env")]);
        assert_eq!(config.providers[0].key.as_ref().map(|k| k.reveal()), Some("from-file"));
    }

    #[test]
    fn messages_can_name_where_a_key_and_settings_are() {
        let cases = [
            (r#"{"providers": {"openai": {"api_key": "k"}}}"#, None, "api_key at /h/config.jsonc:1"),
            (r#"{"providers": {"openai": {}}}"#, Some("OPENAI_API_KEY"), "the variable OPENAI_API_KEY"),
            (r#"{"providers": {"openai": {"api_key_env": "MINE"}}}"#, Some("MINE"), "the variable MINE"),
            (r#"{"providers": {"openai": {"api_key_env": "MINE"}}}"#, None, "the variable MINE"),
            (
                r#"{"providers": {"openai": {"base_url": "http://127.0.0.1:9"}}}"#,
                None,
                "api_key of providers.openai in /h/config.jsonc",
            ),
        ];
        for (file, var, key) in cases {
            let vars: Vec<(&str, &str)> = var.iter().map(|var| (*var, "k")).collect();
            let config = config(file, &vars);
            let remedies = config.remedies(&config.providers[0]);
            assert_eq!(remedies.key.as_deref(), Some(key), "{file}");
            assert_eq!(remedies.settings.as_deref(), Some("providers.openai in /h/config.jsonc"));
        }
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        for (file, vars, flag, session, expected) in [
            ("", &[][..], None, None, "no model is configured"),
            ("", &[], None, None, "/h/config.jsonc"),
            (FILE, &[], Some("nope/x"), None, "known: own, other"),
            (FILE, &[], None, Some("gone/x"), "choose another with -m"),
            ("", &[], Some("nope/x"), None, "none is configured"),
            ("", &[], Some("anthropic/x"), None, "export ANTHROPIC_API_KEY"),
            (r#"{"providers": {"p": {"api_key": "k"}}}"#, &[], Some("p/x"), None, "has no base_url"),
            (
                r#"{"providers": {"p": {"base_url": "http://x", "api_key_env": "P_KEY"}}}"#,
                &[],
                Some("p/x"),
                None,
                "P_KEY, which is not set",
            ),
            (r#"{"model": "q/x"}"#, &[("OPENAI_API_KEY", "k")], None, None, "/h/config.jsonc:1 names provider \"q\""),
        ] {
            let message = chosen(file, vars, flag, session).expect_err(expected);
            assert!(message.contains(expected), "{message}\n  lacks {expected}");
        }
    }

    #[test]
    fn the_sampling_of_a_model_wins_over_that_of_its_provider_and_belongs_to_nobody_else() {
        let file = r#"{"providers": {
            "a": {"base_url": "http://a", "temperature": 0.5, "presence_penalty": 1,
                  "models": [{"id": "own", "top_p": 0.9}, {"id": "auto", "temperature": "auto"}, {"id": "plain"}]},
            "b": {"base_url": "http://b"}}}"#;
        let config = config(file, &[]);
        for (model, expected) in [
            ("a/own", &[("top_p", 0.9), ("presence_penalty", 1.0)][..]),
            ("a/auto", &[("presence_penalty", 1.0)]),
            ("a/plain", &[("temperature", 0.5), ("presence_penalty", 1.0)]),
            ("a/unlisted", &[("temperature", 0.5), ("presence_penalty", 1.0)]),
            ("b/own", &[]),
        ] {
            let chosen = config.choose(Some(&model.parse().unwrap()), None).unwrap();
            assert_eq!(chosen.sampling.sent().collect::<Vec<_>>(), expected, "{model}");
        }
    }

    #[test]
    fn a_model_nobody_described_has_a_usual_window() {
        let config = config(FILE, &[]);
        let chosen = config.choose(None, None).unwrap();
        assert_eq!((chosen.info.context_window, chosen.info.max_output_tokens), (128_000, 16_384));
        let session = Settings { context_window: Some(4_096), ..Settings::default() };
        assert_eq!(config.choose(None, Some(&session)).unwrap().info.context_window, 4_096);
    }

    #[test]
    fn another_host_does_not_have_the_windows_of_the_one_it_stands_for() {
        let known = (1_050_000, 128_000);
        let usual = (128_000, 16_384);
        let at = |url: &str| format!(r#"{{"providers": {{"openai": {{"base_url": "{url}", "api_key": "k"}}}}}}"#);
        for (file, url, expected) in [
            ("", None, known),
            ("", Some("https://api.openai.com/v1"), known),
            ("", Some("https://API.openai.com"), known),
            ("", Some("https://api.openai.com:443/v1/"), known),
            ("", Some("https://me:pw@api.openai.com/v1"), known),
            ("", Some("https://api.openai.com:pw@other.example/v1"), usual),
            ("", Some("http://127.0.0.1:8080/v1"), usual),
            ("", Some("https://api.openai.com.example/v1"), usual),
            ("", Some("https://proxy.example/api.openai.com/v1"), usual),
            (&at("https://api.openai.com/v1"), None, known),
            (&at("http://localhost:1234"), None, usual),
            (&at("http://localhost:1234"), Some("https://api.openai.com/v1"), usual),
        ] {
            let mut vars = vec![("OPENAI_API_KEY", "k")];
            vars.extend(url.map(|url| ("OPENAI_BASE_URL", url)));
            let info = config(file, &vars).choose(None, None).unwrap().info;
            assert_eq!(info.model.to_string(), "openai/gpt-5.4");
            assert_eq!((info.context_window, info.max_output_tokens), expected, "{file} {url:?}");
        }
    }

    #[test]
    fn variables_that_hold_keys_are_known() {
        let file = r#"{"providers": {"p": {"base_url": "http://x", "api_key_env": "P_KEY"}}}"#;
        let vars = config(file, &[("P_KEY", "k")]).key_vars();
        for var in ["P_KEY", "OPENAI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"] {
            assert!(vars.iter().any(|v| v == var), "{var}");
        }
        for (url, holds) in [("http://h/v1?key=k", true), ("http://h/v1?api-version=1", false), ("http://h", false)] {
            let vars = config("", &[("OPENAI_BASE_URL", url)]).key_vars();
            assert_eq!(vars.iter().any(|v| v == "OPENAI_BASE_URL"), holds, "{url}");
        }
    }

    #[test]
    fn a_key_that_the_file_replaces_stays_a_secret() {
        let file = r#"{"providers": {"openai": {"api_key": "from-file"}}}"#;
        let secrets = config(file, &[("OPENAI_API_KEY", "from-env"), ("PATH", "/bin")]).secrets();
        assert_eq!(secrets, ["from-file", "from-env"]);
    }

    #[test]
    fn a_wrong_base_url_in_the_environment_is_named() {
        let env = Env::of(&[("OPENAI_BASE_URL", "127.0.0.1:80?key=hunter2")]);
        let Err(Stop::Failed(failure)) = Config::from_file(FileConfig::default(), &env) else { panic!("accepted") };
        assert!(failure.message.contains("OPENAI_BASE_URL"));
        assert!(!failure.message.contains("hunter2"), "{}", failure.message);
    }
}
