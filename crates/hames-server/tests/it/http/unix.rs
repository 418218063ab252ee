//! The unix socket is this user's alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use hames_client::{Client, Place, Socket};
use hames_server::http::{Listener, NoListener};
use tokio::net::UnixStream;

use super::kit::{Served, converse};

const NOBODY: u32 = 65534;
const HELPER: &str = "HAMES_TEST_SOCKET";

#[tokio::test]
async fn the_socket_is_0600_in_a_0700_folder_and_gone_afterwards() {
    let served = Served::start().await;
    let path = served.place.sockets()[0].clone();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let answer = converse(
        UnixStream::connect(&path).await.unwrap(),
        b"GET /v1/health HTTP/1.1\r\nhost: whatever\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(answer.json()["name"], "hames");
    served.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_second_server_is_told_of_the_first_and_a_dead_ones_socket_is_taken_over() {
    let served = Served::start().await;
    let path = served.place.sockets()[0].clone();
    assert!(matches!(Listener::unix(&served.place).await.err(), Some(NoListener::Taken(_))));
    let place = served.place.clone();
    served.stop().await;
    // Its home went with it.
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    // What a kill leaves: a socket nobody listens on.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let again = Listener::unix(&place).await.unwrap();
    assert_eq!(again.place(), path.display().to_string());
    drop(again);
    fs::remove_dir_all(place.folder().parent().unwrap()).unwrap();
}

#[tokio::test]
async fn a_home_with_a_long_path_has_a_socket_in_a_short_private_folder() {
    let base = tempfile::tempdir().unwrap();
    let home = base.path().join("x".repeat(120));
    fs::create_dir(&home).unwrap();
    let place = Place::of(&home);
    let listener = Listener::unix(&place).await.unwrap();
    let path = listener.place();
    assert!(path.starts_with("/tmp/hames-") && path.len() < 60, "{path}");
    let folder = Path::new(&path).parent().unwrap().to_owned();
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    drop(listener);

    // A trap in its place: open to others, or a link elsewhere.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Listener::unix(&place).await.err().unwrap().to_string();
    assert!(refused.contains("other users could reach the server's socket"), "{refused}");
    fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(base.path(), &folder).unwrap();
    let refused = Listener::unix(&place).await.err().unwrap().to_string();
    assert!(refused.contains("is not a folder"), "{refused}");
    fs::remove_file(&folder).unwrap();
}

#[tokio::test]
async fn another_user_cannot_open_the_socket_and_is_not_answered_where_the_folder_lets_them() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: only root can become another user");
        return;
    }
    let served = Served::start().await;
    let socket = served.place.sockets()[0].clone();
    let folder = socket.parent().unwrap().to_owned();
    let stranger = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(stranger.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = stranger.path().join("stranger");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let said = async |socket: &Path| {
        let mut command = Command::new(&binary);
        command.args(["--exact", "http::unix::helper_connects", "--nocapture", "--ignored"]);
        command.env(HELPER, socket).current_dir("/").uid(NOBODY).gid(NOBODY);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = text.split("SAID ").nth(1).unwrap_or_else(|| panic!("{output:?}"));
        said.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(said(&socket).await, "PermissionDenied");
    // Even where somebody opened the folders: whoever connects is looked at.
    for open in [served.home.path(), &folder, &socket] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    assert_eq!(said(&socket).await, "0 bytes");
    // And a client does not talk to another user's socket.
    let trap = stranger.path().join("trap.sock");
    let mut command = Command::new(&binary);
    command.args(["--exact", "http::unix::helper_listens", "--nocapture", "--ignored"]);
    fs::set_permissions(stranger.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut listening = command.env(HELPER, &trap).current_dir("/").uid(NOBODY).gid(NOBODY).spawn().unwrap();
    while !trap.exists() {
        assert!(listening.try_wait().unwrap().is_none(), "the trap was not set");
        tokio::task::yield_now().await;
    }
    let client = Client::new(std::sync::Arc::new(Socket::unix([trap])));
    let refused = client.health().await.unwrap_err().to_string();
    listening.kill().unwrap();
    listening.wait().unwrap();
    assert!(refused.contains("belongs to user 65534"), "{refused}");
    served.stop().await;
}

#[test]
#[ignore = "run by another_user_cannot_open_the_socket_and_is_not_answered_where_the_folder_lets_them"]
fn helper_connects() {
    use std::io::{Read, Write};
    let Some(socket) = std::env::var_os(HELPER) else { return };
    match std::os::unix::net::UnixStream::connect(socket) {
        Err(error) => println!("SAID {:?}", error.kind()),
        Ok(mut stream) => {
            let mut answer = Vec::new();
            // A connection that is turned away breaks while it is written to or read.
            let _ = stream.write_all(b"GET /v1/health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            let _ = stream.read_to_end(&mut answer);
            println!("SAID {} bytes", answer.len());
        }
    }
}

#[test]
#[ignore = "run by another_user_cannot_open_the_socket_and_is_not_answered_where_the_folder_lets_them"]
fn helper_listens() {
    let Some(socket) = std::env::var_os(HELPER) else { return };
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    // Until it is killed.
    let taken: Vec<_> = listener.incoming().collect();
    drop(taken);
}
