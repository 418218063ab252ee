//! A place between the server's socket and its clients, where connections can be cut while the server lives on.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::crash::dice::Dice;
use crate::kit::User;

/// Stands where the server's socket stood. Its threads end with their connections.
pub(super) struct Proxy {
    open: Arc<Mutex<Vec<UnixStream>>>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// Where the server's own socket is then.
    pub(super) fn behind(user: &User) -> PathBuf {
        user.home().join("run/behind.sock")
    }

    /// Moves the socket of the server that runs out of the way, and takes its place.
    pub(super) fn before(user: &User) -> Proxy {
        Self::passing(user, || u64::MAX)
    }

    /// The same, but the first `cuts` connections break off behind a random number of bytes from the server, up to
    /// `reach`.
    pub(super) fn breaking(user: &User, mut dice: Dice, cuts: usize, reach: u64) -> Proxy {
        let mut left = cuts;
        Self::passing(user, move || match left {
            0 => u64::MAX,
            _ => {
                left -= 1;
                dice.below(reach)
            }
        })
    }

    /// `bytes` says of each connection how many bytes of the server pass.
    fn passing(user: &User, mut bytes: impl FnMut() -> u64 + Send + 'static) -> Proxy {
        let (place, behind) = (user.home().join("run/server.sock"), Self::behind(user));
        std::fs::rename(&place, &behind).unwrap();
        let listener = UnixListener::bind(&place).unwrap();
        let proxy = Proxy { open: Arc::default(), cuts: Arc::default() };
        let (kept, cuts) = (Arc::clone(&proxy.open), Arc::clone(&proxy.cuts));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&behind)) else { return };
                kept.lock().unwrap().push(client.try_clone().unwrap());
                pass(&client, &server, u64::MAX, &cuts);
                pass(&server, &client, bytes(), &cuts);
            }
        });
        proxy
    }

    /// Connections that broke off so far.
    pub(super) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    /// Cuts every connection there is; new ones are let through.
    pub(super) fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            // One that has ended already needs no cut.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Hands on what comes, in a thread, to the end of it or of so many bytes; then the connection is cut.
fn pass(from: &UnixStream, to: &UnixStream, mut left: u64, cuts: &Arc<AtomicUsize>) {
    let (mut from, mut to, cuts) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(cuts));
    std::thread::spawn(move || {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let passes = usize::try_from(left).unwrap_or(usize::MAX).min(count);
            if to.write_all(&bytes[..passes]).is_err() {
                break;
            }
            left -= passes as u64;
            if passes < count {
                cuts.fetch_add(1, Ordering::SeqCst);
                let _ = to.shutdown(Shutdown::Both);
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    });
}
