//! Pages of a log, from either end.

use hames_protocol::*;
use hames_store::{Page, PageAt};

use crate::kit::*;

fn seqs(page: &Page) -> Vec<u64> {
    page.events.iter().map(|e| e.seq.unwrap()).collect()
}

#[test]
fn a_page_is_read_from_either_end_and_says_whether_more_follows() {
    let home = Home::new();
    let id = home.session("s").id;
    home.append(&id, 2, (2..=10).map(|n| answer(&n.to_string())).collect()).unwrap();
    // A gap, as a cut leaves one.
    home.sql().execute("DELETE FROM events WHERE seq IN (5, 6)", []).unwrap();
    let cases: [(PageAt, usize, &[u64], bool); 14] = [
        (PageAt::End, 3, &[8, 9, 10], true),
        (PageAt::End, 8, &[1, 2, 3, 4, 7, 8, 9, 10], false),
        (PageAt::End, 7, &[2, 3, 4, 7, 8, 9, 10], true),
        (PageAt::End, 0, &[], true),
        (PageAt::Before(8), 2, &[4, 7], true),
        (PageAt::Before(7), 2, &[3, 4], true),
        (PageAt::Before(6), 9, &[1, 2, 3, 4], false),
        (PageAt::Before(1), 9, &[], false),
        (PageAt::Before(0), 9, &[], false),
        (PageAt::Before(u64::MAX), 1, &[10], true),
        (PageAt::After(0), 2, &[1, 2], true),
        (PageAt::After(4), 2, &[7, 8], true),
        (PageAt::After(9), 5, &[10], false),
        (PageAt::After(u64::MAX), 5, &[], false),
    ];
    for (at, limit, expected, more) in cases {
        let page = home.store().page(&id, at, limit).unwrap();
        assert_eq!((seqs(&page), page.has_more), (expected.to_vec(), more), "{at:?} {limit}");
        assert_eq!(page.last_seq, 10);
    }
    assert_eq!(home.store().last_seq(&id), Ok(10));
    for answer in [home.store().last_seq(&"x".into()).err(), home.store().page(&"x".into(), PageAt::End, 1).err()] {
        assert_eq!(answer, Some(LogError::NoSession("x".into())));
    }
}

#[test]
fn large_events_make_a_page_short_and_never_empty() {
    let home = Home::new();
    let id = home.session("s").id;
    for seq in 2..8 {
        home.append(&id, seq, vec![answer(&"x".repeat(3 << 18))]).unwrap();
    }
    home.append(&id, 8, vec![answer(&"y".repeat(5 << 20))]).unwrap();
    let newest = home.store().page(&id, PageAt::End, 100).unwrap();
    assert_eq!((seqs(&newest), newest.has_more), (vec![8], true));
    let before = home.store().page(&id, PageAt::Before(8), 100).unwrap();
    assert_eq!((seqs(&before), before.has_more), (vec![6, 7], true));
}

#[test]
fn the_pages_of_a_session_are_its_log_and_nothing_of_its_neighbours() {
    let home = Home::new();
    let ids = ["a", "b", "c"].map(|name| home.session(name).id);
    for id in &ids {
        home.append(id, 2, (0..50).map(|n| answer(&format!("{id} {n}"))).collect()).unwrap();
    }
    let (mut at, mut pages) = (PageAt::End, Vec::new());
    loop {
        let page = home.store().page(&ids[1], at, 7).unwrap();
        at = PageAt::Before(page.events[0].seq.unwrap());
        pages.push(page.events);
        if !page.has_more {
            break;
        }
    }
    let joined: Vec<Envelope> = pages.into_iter().rev().flatten().collect();
    assert_eq!(joined, home.read(&ids[1]));
}
