//! A place between the server's socket and its clients, where connections can be cut while the server lives on.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};

use crate::kit::User;

/// Stands where the server's socket stood. Its threads end with their connections.
pub(super) struct Proxy {
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl Proxy {
    /// Moves the socket of the server that runs out of the way, and takes its place.
    pub(super) fn before(user: &User) -> Proxy {
        let (place, behind) = (user.home().join("run/server.sock"), user.home().join("run/behind.sock"));
        std::fs::rename(&place, &behind).unwrap();
        let listener = UnixListener::bind(&place).unwrap();
        let open: Arc<Mutex<Vec<UnixStream>>> = Arc::default();
        let kept = Arc::clone(&open);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&behind)) else { return };
                kept.lock().unwrap().push(client.try_clone().unwrap());
                pass(&client, &server);
                pass(&server, &client);
            }
        });
        Proxy { open }
    }

    /// Cuts every connection there is; new ones are let through.
    pub(super) fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            // One that has ended already needs no cut.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Hands on what comes, in a thread, to the end of it.
fn pass(from: &UnixStream, to: &UnixStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    });
}
