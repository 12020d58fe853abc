use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

/// The content of `ring.txt`. `BLESS=1` in the environment writes it again.
const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo/view/ring.txt");

fn map(spec: &str) -> Map {
    let spec: urtica_topology::spec::TopologySpec = spec.parse().unwrap();
    Map::new(&spec, &spec.plan().unwrap())
}

fn figures() -> Figures {
    Figures {
        flows_per_s: 100,
        packets_per_s: 1987,
        latency_p50: Some(Duration::from_micros(320)),
        latency_p99: Some(Duration::from_micros(430)),
        links_per_s: vec![700, 0, 12, 400],
        switches_per_s: vec![700, 700, 412, 400],
        entries: vec![11, 12, 8, 9],
    }
}

/// Returns a ring of four: a busy link, a cut one, an idle one that is selected, and one that carries some packets.
fn picture<'a>(map: &'a Map, figures: &'a Figures, log: &'a [StoryLine]) -> Picture<'a> {
    let switch = |(name, hosts): (&'a str, &str)| SwitchLook {
        name,
        has_joined: true,
        hosts: hosts.to_owned(),
        knows_hosts: true,
    };
    let link = |frames_per_s| LinkLook {
        is_discovered: true,
        frames_per_s,
        ..LinkLook::default()
    };
    let mut links = figures
        .links_per_s
        .iter()
        .copied()
        .map(link)
        .collect::<Vec<_>>();
    links[1].is_cut = true;
    links[2].is_selected = true;
    let named = [("s1", "h1"), ("s2", "h2"), ("s3", "h3"), ("s4", "2 hosts")];
    Picture {
        spec: "ring,4",
        map,
        switches: named.map(switch).into_iter().collect(),
        links,
        figures,
        history: vec![0, 0, 50, 100, 100, 100, 90],
        pings: (9, 12),
        lost: 15,
        log: log.iter().collect(),
        now: Duration::from_millis(12_340),
        is_paused: false,
        shows_help: false,
        has_colours: true,
    }
}

fn log() -> Vec<StoryLine> {
    vec![
        StoryLine::Finding("told long ago".to_owned()),
        StoryLine::Detail("not told here".to_owned()),
        StoryLine::Scene("The busiest link, s2-s3, is cut.".to_owned()),
        StoryLine::News("the controller has lost the link s2:3 - s3:2: its port is down".to_owned()),
        StoryLine::Finding("h2 to h3 went by s2 s3 and goes by s2 s1 s4 s3, which is a long way that needs a second line".to_owned()),
    ]
}

fn drawn(picture: &Picture, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, picture)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    rows.map(|row| format!("{}\n", row.trim_end())).collect()
}

#[test]
fn a_ring_with_a_cut_is_drawn_as_recorded() {
    let (map, figures, log) = (map("ring,4"), figures(), log());
    let drawn = text(&drawn(&picture(&map, &figures, &log), 80, 24));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(RING, &drawn).unwrap();
    }
    assert_eq!(drawn, std::fs::read_to_string(RING).unwrap(), "\n{drawn}");
}

#[test]
fn a_cut_is_red_and_marked_and_without_colours_still_marked() {
    let (map, figures) = (map("ring,4"), figures());
    let mut picture = picture(&map, &figures, &[]);
    let colours = |buffer: &Buffer| -> Vec<Color> {
        let cells = buffer.content.iter();
        cells
            .map(|cell| cell.fg)
            .filter(|&colour| colour != Color::Reset)
            .collect()
    };
    let with = drawn(&picture, 80, 24);
    assert!(colours(&with).contains(&Color::Red));
    picture.has_colours = false;
    let without = drawn(&picture, 80, 24);
    assert_eq!(colours(&without), []);
    assert_eq!(text(&with), text(&without));
    assert_eq!(text(&without).matches('×').count(), 1);
    picture.links[1].is_cut = false;
    assert_eq!(text(&drawn(&picture, 80, 24)).matches('×').count(), 0);
}

#[test]
fn every_size_of_terminal_is_drawn_into() {
    let (map, figures, log) = (map("ring,4"), figures(), log());
    let mut picture = picture(&map, &figures, &log);
    for shows_help in [false, true] {
        picture.shows_help = shows_help;
        for (width, height) in [(1, 1), (10, 3), (59, 19), (60, 20), (80, 24), (200, 60)] {
            let drawn = text(&drawn(&picture, width, height));
            let is_large_enough = (width, height) >= SMALLEST;
            assert_eq!(
                drawn.contains("flows/s"),
                is_large_enough,
                "{width}x{height}\n{drawn}"
            );
        }
    }
}

#[test]
fn a_large_network_is_drawn_without_names() {
    let map = map("torus,6,5");
    let (figures, of_ring) = (Figures::default(), figures());
    let switch = |_| SwitchLook {
        name: "s1x1",
        has_joined: false,
        hosts: "h1x1".to_owned(),
        knows_hosts: false,
    };
    let picture = Picture {
        spec: "torus,6,5",
        switches: map.switches.iter().map(switch).collect(),
        links: vec![LinkLook::default(); map.links.len()],
        history: Vec::new(),
        pings: (0, 0),
        figures: &figures,
        ..picture(&map, &of_ring, &[])
    };
    let drawn = text(&drawn(&picture, 80, 24));
    assert_eq!(drawn.matches('■').count(), 30, "\n{drawn}");
    assert!(drawn.contains("and 21 more"), "\n{drawn}");
}

#[test]
fn words_are_kept_whole() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("incomprehensible", 5), ["incomprehensible"]);
    assert_eq!(wrap("", 5), [""]);
}
