//! Switches that send their last requests and close their side at once. They have left, but still receive all their answers
//! before the end of the stream.

use crate::{Scene, in_every_form, wait_for_switches};
use urtica_wire::Version;

/// From a single request to more than one read can return.
const COUNTS: [u32; 5] = [1, 2, 50, 400, 4_000];

/// Lengths of the pieces in which requests are sent.
const PIECES: [usize; 3] = [100, 1_500, 1 << 20];

fn check(scene: &Scene, version: Version, requests: &[u8], count: u32, piece: usize) {
    let mut peer = scene.earned(version, 2);
    let (mut socket, form) = (peer.socket.try_clone().unwrap(), scene.form);
    let answers = std::thread::scope(|scope| {
        scope.spawn(move || {
            for piece in requests.chunks(piece) {
                std::io::Write::write_all(&mut socket, piece).unwrap();
            }
            socket.shutdown(std::net::Shutdown::Write).unwrap();
        });
        peer.read_to_end()
    });
    assert_eq!(answers, count as usize, "{form} {version:?}: {piece} bytes");
    wait_for_switches(&scene.controller, 1);
}

#[test]
fn requests_before_a_half_close_are_answered() {
    in_every_form(|scene| {
        for version in Version::ALL {
            for count in COUNTS {
                let requests = scene.earned(version, 2).requests(count);
                for piece in PIECES
                    .into_iter()
                    .filter(|piece| count <= 400 || *piece > 100)
                {
                    for _ in 0..3 {
                        check(scene, version, &requests, count, piece);
                    }
                }
            }
        }
    });
}

/// The last request needs the program, and waits behind answers that the kernel has not written.
#[test]
fn a_request_for_the_program_before_a_half_close_is_answered() {
    in_every_form(|scene| {
        for version in Version::ALL {
            for count in [1, 7, 50] {
                for _ in 0..10 {
                    let mut peer = scene.earned(version, 2);
                    let requests = peer.requests(count);
                    peer.send(&requests);
                    // The kernel does not answer this type; the answer to it is an error.
                    peer.send(&[version.to_wire(), 5, 0, 8, 0, 0, 0, 9]);
                    peer.send(&requests);
                    assert_eq!(peer.finish(), 2 * count as usize, "{}", scene.form);
                }
            }
        }
    });
}

/// A switch that closes its side before it has read the answers receives them when it reads.
#[test]
fn answers_wait_for_a_half_closed_switch_that_reads_late() {
    const REQUESTS: u32 = 3_000;
    in_every_form(|scene| {
        let mut peer = scene.earned(Version::Of13, 2);
        peer.send(&peer.requests(REQUESTS));
        peer.socket.shutdown(std::net::Shutdown::Write).unwrap();
        scene.check_neighbour();
        assert_eq!(peer.read_to_end(), REQUESTS as usize, "{}", scene.form);
    });
}
