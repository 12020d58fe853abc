use super::field::IPV4;
use super::*;

fn error(text: &str) -> String {
    text.parse::<Match>().expect_err(text).to_string()
}

#[test]
fn ambiguous_names_follow_the_protocol() {
    let parse = |text: &str| text.parse::<Match>().expect(text);
    assert_eq!(
        parse("tp_dst=53,udp6"),
        Match::any().eth_type(0x86dd).ip_proto(17).udp_dst(53)
    );
    assert_eq!(
        parse("arp,nw_src=1.2.3.4,nw_proto=2"),
        Match::any()
            .eth_type(0x0806)
            .with_exact(OxmField::ArpSpa, 0x0102_0304u32)
            .with_exact(OxmField::ArpOp, 2u8)
    );
    assert_eq!(
        parse("dl_type=0x800,nw_proto=1,icmp_type=8"),
        Match::any()
            .eth_type(IPV4)
            .ip_proto(1)
            .with_exact(OxmField::Icmpv4Type, 8u8)
    );
}

#[test]
fn the_specifications_names_are_literal() {
    assert_eq!("tcp_dst=80".parse(), Ok(Match::any().tcp_dst(80)));
    assert_eq!(Match::any().tcp_dst(80).to_string(), "tcp_dst=80");
    let address = std::net::Ipv4Addr::new(1, 2, 3, 4);
    assert_eq!(Match::any().ipv4_src(address).to_string(), "ip_src=1.2.3.4");
}

#[test]
fn wildcards_leave_the_field_out() {
    assert_eq!("nw_src=*,dl_dst=*".parse(), Ok(Match::any()));
    assert_eq!("ip_src=1.2.3.4/0".parse(), Ok(Match::any()));
}

#[test]
fn addresses_and_protocols_need_an_ethernet_type() {
    for (name, value) in [("nw_src", "10.0.0.1"), ("nw_dst", "10.0.0.0/8")] {
        for before in ["", "in_port=1,", "ipv6,", "dl_type=0x8847,"] {
            assert_eq!(
                error(&format!("{before}{name}={value}")),
                format!(
                    "column {}: '{name}' depends on a protocol that this match does not name; expected one of ip, arp \
                     or a protocol of IPv4, such as tcp, with it",
                    before.len() + 1
                )
            );
        }
        for before in ["ip,", "arp,", "tcp,", "dl_type=0x0800,", "rarp,"] {
            let text = format!("{before}{name}={value}");
            assert!(text.parse::<Match>().is_ok(), "{text}");
        }
    }
    assert_eq!(
        error("nw_proto=6"),
        "column 1: 'nw_proto' depends on a protocol that this match does not name; expected one of ip, ipv6, arp \
         with it"
    );
    assert!("ipv6,nw_proto=6".parse::<Match>().is_ok());
}

#[test]
fn other_words_for_ip_are_read() {
    let parse = |text: &str| text.parse::<Match>().expect(text);
    assert_eq!(parse("ip6"), parse("ipv6"));
    assert_eq!(parse("ip4"), parse("ip"));
    assert_eq!(parse("ipv4"), parse("ip"));
    assert_eq!(parse("ip6").to_string(), "ipv6");
    assert_eq!(parse("ipv4").to_string(), "ip");
}

#[test]
fn fields_of_open_vswitch_are_named_as_such() {
    for name in ["tcp_flags", "nw_frag", "reg0", "xreg15", "ct_state"] {
        assert_eq!(
            error(&format!("{name}=1")),
            format!(
                "column 1: '{name}' is a field of Open vSwitch, not of OpenFlow; expected a field of OpenFlow, such as \
                 in_port, dl_dst or nw_src"
            )
        );
    }
}

#[test]
fn errors_are_sentences_with_a_column() {
    assert_eq!(
        error("tcp,in_prt=1"),
        "column 5: 'in_prt' is not a match field or keyword; did you mean 'in_port'?"
    );
    assert_eq!(
        error("nw_dst=10.0.0"),
        "column 8: '10.0.0' is not an IPv4 address; expected four numbers, as in 10.0.0.1"
    );
    assert_eq!(
        error("ip,tp_dst=1"),
        "column 4: 'tp_dst' depends on a protocol that this match does not name; expected one of tcp, udp, sctp, \
         icmp, tcp6, udp6, sctp6, icmp6 with it"
    );
    assert_eq!(
        error("tcp,udp"),
        "column 5: 'udp' contradicts an earlier part of the match; expected one value for each field"
    );
    assert_eq!(
        error("ip,nw_proto=6/0x0f"),
        "column 15: '0x0f' masks a field that OpenFlow does not mask; expected no mask"
    );
    assert_eq!(
        error("dl_vlan=4096"),
        "column 9: '4096' is not a VLAN id; expected 0 to 4095, or 0xffff for no tag"
    );
}
