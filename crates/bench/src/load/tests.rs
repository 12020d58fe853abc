use super::*;

#[test]
fn switches_keep_to_their_share() {
    for (mode, most) in [
        (Mode::PingPong, 1),
        (Mode::Window(7), 7),
        (Mode::MaxRate, 1024),
        (Mode::Rate(1e8), 1024),
    ] {
        let config = LoadConfig {
            mode,
            switches: 2000,
            ..LoadConfig::default()
        };
        let mut switch = Switch::new(&config, 1, send_times(&config));
        switch.due = 1_000_000;
        assert_eq!(switch.allowance(&config), most, "{mode:?}");
        switch.outstanding.sent(most, 0);
        assert_eq!(switch.allowance(&config), 0, "{mode:?}");
        switch.outstanding.answer(0, 1);
        assert_eq!(switch.allowance(&config), 1, "{mode:?}");
    }
}

#[test]
fn threads_share_the_limit_of_outstanding_packet_ins() {
    let config = LoadConfig {
        most_outstanding: Some(100),
        threads: 3,
        ..LoadConfig::default()
    };
    let shares: Vec<_> = (0..3)
        .map(|thread| Share::new(&config, thread, 5).unwrap().most)
        .collect();
    assert_eq!(shares, [33, 33, 34]);
    assert_eq!(Share::new(&config, 0, 5).unwrap().at_a_time, 6);
    assert_eq!(Share::new(&config, 0, 500).unwrap().at_a_time, 1);
    assert!(Share::new(&LoadConfig::default(), 0, 5).is_none());
}
