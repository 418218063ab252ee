//! Lessons on disk: one small JSON file beside the sessions.
//!
//! It is read when it is opened and again, under a lock, before it is written, so that processes that learn at the same
//! time keep each other's lessons. It is replaced as a whole or not at all. A file that cannot be read is forgotten with a
//! notice: everything in it can be learned again. So can what has become old, because servers change.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hames_protocol::Lesson;
use serde::{Deserialize, Serialize};

use super::{LearnedStore, MAX_LESSONS, ModelAt};

/// Seconds after which a lesson is forgotten, 30 days: a server that has been mended since would be short-changed for
/// ever, and learning again costs one refusal.
const FORGET_AFTER_S: u64 = 30 * 86_400;

/// Bytes of a file that is read. With [`MAX_MODELS`] it stays far below.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Models whose lessons are kept; those learned longest ago go first.
const MAX_MODELS: usize = 256;

/// The time, in seconds since 1970.
pub type NowSeconds = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Lessons in a file.
pub struct LearnedFile {
    path: PathBuf,
    now: NowSeconds,
    known: Mutex<Vec<Known>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    models: Vec<Known>,
}

/// What is known of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    endpoint: String,
    model: String,
    lessons: Vec<Dated>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Dated {
    /// Seconds since 1970.
    learned_at: u64,
    #[serde(flatten)]
    lesson: Lesson,
}

impl Known {
    fn is_of(&self, at: &ModelAt) -> bool {
        self.endpoint == at.endpoint && self.model == at.model
    }

    fn newest(&self) -> u64 {
        self.lessons.iter().map(|dated| dated.learned_at).max().unwrap_or(0)
    }
}

impl std::fmt::Debug for LearnedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LearnedFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl LearnedFile {
    /// Opens a file that need not exist; its folder must, once something is learned. The second value is a sentence for
    /// the person where the file had to be forgotten.
    pub fn open(path: impl Into<PathBuf>, now: NowSeconds) -> (Self, Option<String>) {
        let path = path.into();
        let (known, notice) = match read(&path) {
            Ok(known) => (known, None),
            Err(why) => {
                let what = "What models refused before is forgotten and will be learned again";
                (Vec::new(), Some(format!("{}: {why}. {what}.", path.display())))
            }
        };
        (Self { path, now, known: Mutex::new(known) }, notice)
    }

    /// Everything that still holds, model by model in the order of the file.
    pub fn all(&self) -> Vec<(ModelAt, Vec<Lesson>)> {
        let now = (self.now)();
        let lessons =
            |known: &Known| known.lessons.iter().filter(|d| holds(d, now)).map(|d| d.lesson.clone()).collect();
        let at = |known: &Known| ModelAt { endpoint: known.endpoint.clone(), model: known.model.clone() };
        let all = self.known().iter().map(|known| (at(known), lessons(known))).collect::<Vec<_>>();
        all.into_iter().filter(|(_, lessons): &(_, Vec<Lesson>)| !lessons.is_empty()).collect()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's models with those lessons in place of what `at` had, old ones left out.
    fn with(&self, mut models: Vec<Known>, at: &ModelAt, lessons: &[Lesson]) -> Vec<Known> {
        let now = (self.now)();
        let before = models.iter().position(|known| known.is_of(at)).map(|at| models.remove(at));
        let date = |lesson: &Lesson| {
            let known = before
                .iter()
                .flat_map(|known| &known.lessons)
                .find(|dated| dated.lesson == *lesson && holds(dated, now));
            Dated { learned_at: known.map_or(now, |dated| dated.learned_at), lesson: lesson.clone() }
        };
        let lessons = lessons.iter().take(MAX_LESSONS).map(date).collect();
        models.push(Known { endpoint: at.endpoint.clone(), model: at.model.clone(), lessons });
        for known in &mut models {
            known.lessons.retain(|dated| holds(dated, now));
        }
        models.retain(|known| !known.lessons.is_empty());
        models.sort_by_key(Known::newest);
        let surplus = models.len().saturating_sub(MAX_MODELS);
        models.drain(..surplus);
        models
    }
}

impl LearnedStore for LearnedFile {
    fn recall(&self, at: &ModelAt) -> Vec<Lesson> {
        self.all().into_iter().find(|(known, _)| known == at).map(|(_, lessons)| lessons).unwrap_or_default()
    }

    fn remember(&self, at: &ModelAt, lessons: &[Lesson]) -> Result<(), String> {
        let mut known = self.known();
        let _lock = lock(&self.path).map_err(|error| format!("{} cannot be locked: {error}", self.path.display()))?;
        // Another process may have learned meanwhile. What cannot be read is replaced.
        let on_disk = read(&self.path).unwrap_or_default();
        *known = self.with(on_disk, at, lessons);
        write(&self.path, &Content { models: known.clone() })
            .map_err(|error| format!("{} cannot be written: {error}", self.path.display()))
    }
}

/// A time in the future is one of a clock that was wrong; such a lesson is forgotten like an old one.
fn holds(dated: &Dated, now: u64) -> bool {
    now.abs_diff(dated.learned_at) < FORGET_AFTER_S
}

fn read(path: &Path) -> Result<Vec<Known>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("it cannot be read ({error})")),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| format!("it cannot be read ({error})"))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err("it is larger than 1 MB".to_owned());
    }
    let content: Content = serde_json::from_str(&text).map_err(|error| format!("it is damaged ({error})"))?;
    Ok(content.models)
}

/// Held until it is dropped; the death of its holder frees it.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Replaces the file, or leaves it as it is.
fn write(path: &Path, content: &Content) -> std::io::Result<()> {
    let text = serde_json::to_vec_pretty(content)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(&text)?;
    staged.as_file().sync_all()?;
    staged.persist(path).map_err(|error| error.error)?;
    // The name itself may be lost with the power; then it is learned again.
    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use hames_protocol::Remedy;
    use serde_json::json;

    use super::*;

    fn at(model: &str) -> ModelAt {
        ModelAt { endpoint: "http://h/v1/chat/completions".into(), model: model.into() }
    }

    fn clock() -> (Arc<AtomicU64>, NowSeconds) {
        let time = Arc::new(AtomicU64::new(1_800_000_000));
        let read = Arc::clone(&time);
        (time, Arc::new(move || read.load(Ordering::SeqCst)))
    }

    fn open(path: &Path, now: &NowSeconds) -> LearnedFile {
        let (file, notice) = LearnedFile::open(path, Arc::clone(now));
        assert_eq!(notice, None);
        file
    }

    fn lessons() -> Vec<Lesson> {
        vec![
            Lesson::new("max_tokens", Remedy::Rename("max_completion_tokens".into())),
            Lesson { with_tools: true, ..Lesson::new("reasoning_effort", Remedy::Set(json!("none"))) },
            Lesson { value: Some(json!({"type": "enabled"})), ..Lesson::new("thinking", Remedy::Drop) },
        ]
    }

    #[test]
    fn lessons_outlive_the_process_and_belong_to_one_model_at_one_endpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (_, now) = clock();
        open(&path, &now).remember(&at("m"), &lessons()).unwrap();
        open(&path, &now).remember(&at("n"), &lessons()[..1]).unwrap();
        let file = open(&path, &now);
        assert_eq!(file.recall(&at("m")), lessons());
        assert_eq!(file.recall(&at("n")), lessons()[..1]);
        for other in [at("M"), at(""), ModelAt { endpoint: "http://h/v2/chat/completions".into(), model: "m".into() }] {
            assert_eq!(file.recall(&other), [], "{other:?}");
        }
        file.remember(&at("m"), &[]).unwrap();
        assert_eq!(open(&path, &now).all(), [(at("n"), lessons()[..1].to_vec())]);
    }

    #[test]
    fn what_two_processes_learn_at_once_is_kept_of_both() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (_, now) = clock();
        let files: Vec<LearnedFile> = (0..8).map(|_| open(&path, &now)).collect();
        std::thread::scope(|scope| {
            for (n, file) in files.iter().enumerate() {
                scope.spawn(move || file.remember(&at(&format!("m{n}")), &lessons()).unwrap());
            }
        });
        assert_eq!(open(&path, &now).all().len(), files.len());
        let names: Vec<String> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(names.len(), 2, "nothing staged is left: {names:?}");
    }

    #[test]
    fn a_lesson_is_forgotten_after_a_while_and_each_has_its_own_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (time, now) = clock();
        open(&path, &now).remember(&at("m"), &lessons()[..1]).unwrap();
        time.fetch_add(FORGET_AFTER_S / 2, Ordering::SeqCst);
        open(&path, &now).remember(&at("m"), &lessons()).unwrap();
        time.fetch_add(FORGET_AFTER_S / 2 - 1, Ordering::SeqCst);
        assert_eq!(open(&path, &now).recall(&at("m")), lessons());
        time.fetch_add(1, Ordering::SeqCst);
        assert_eq!(open(&path, &now).recall(&at("m")), lessons()[1..]);
        time.fetch_sub(10 * FORGET_AFTER_S, Ordering::SeqCst);
        assert_eq!(open(&path, &now).recall(&at("m")), [], "what was learned in the future is no knowledge");
    }

    #[test]
    fn a_damaged_file_is_forgotten_with_a_notice_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (_, now) = clock();
        let whole =
            r#"{"models":[{"endpoint":"e","model":"m","lessons":[{"learned_at":1,"parameter":"p","remedy":"drop"}]}]}"#;
        let cases = [
            ("empty", String::new()),
            ("cut", whole[..whole.len() - 3].to_owned()),
            ("other", "[]".into()),
            ("text", "hello".into()),
            ("remedy", whole.replace("drop", "burn")),
            ("time", whole.replace(":1,", ":-1,")),
            ("deep", "[".repeat(100_000)),
            ("large", format!("{{\"models\":[]{}}}", " ".repeat(1024 * 1024))),
        ];
        for (name, text) in cases {
            let path = folder.path().join(format!("{name}.json"));
            fs::write(&path, text).unwrap();
            let (file, notice) = LearnedFile::open(&path, Arc::clone(&now));
            let notice = notice.unwrap_or_else(|| panic!("{name} is taken"));
            assert!(notice.contains(name) && notice.contains("will be learned again"), "{notice}");
            file.remember(&at("m"), &lessons()).unwrap();
            assert_eq!(open(&path, &now).recall(&at("m")), lessons(), "{name}");
        }
        let binary = folder.path().join("binary.json");
        fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
        assert!(LearnedFile::open(&binary, Arc::clone(&now)).1.is_some());
        assert!(LearnedFile::open(folder.path(), now).1.is_some());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_said_and_nothing_breaks() {
        let folder = tempfile::tempdir().unwrap();
        let (_, now) = clock();
        let file = open(&folder.path().join("missing/learned.json"), &now);
        let error = file.remember(&at("m"), &lessons()).unwrap_err();
        assert!(error.contains("missing/learned.json"), "{error}");
    }

    #[test]
    fn the_file_stays_small_and_keeps_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let (time, now) = clock();
        let models: Vec<Known> = (0..MAX_MODELS + 20)
            .map(|n| {
                let lesson = Dated { learned_at: (now)() - 1000 + n as u64, lesson: lessons()[0].clone() };
                Known { endpoint: "e".into(), model: format!("m{n}"), lessons: vec![lesson] }
            })
            .collect();
        write(&path, &Content { models }).unwrap();
        time.fetch_add(1, Ordering::SeqCst);
        let file = open(&path, &now);
        let many: Vec<Lesson> = (0..100).map(|n| Lesson::new(format!("p{n}"), Remedy::Drop)).collect();
        file.remember(&at("new"), &many).unwrap();
        let all = open(&path, &now).all();
        assert_eq!(all.len(), MAX_MODELS);
        assert_eq!(all.last().map(|(at, lessons)| (at.model.as_str(), lessons.len())), Some(("new", MAX_LESSONS)));
        assert!(all.iter().all(|(at, _)| at.model != "m0"));
    }
}
