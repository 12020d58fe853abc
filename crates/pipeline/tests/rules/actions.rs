//! Action lists: the effect of earlier actions on each action (1.3.5 section 5.11).

use crate::support::{Bed, TCP, Tcp};
use urtica_wire::PacketInReason::InvalidTtl;

const TTL: usize = 22;

#[test]
fn outputs_send_the_packet_as_changed_so_far() {
    let bed = Bed::with(&[
        "ip,actions=output:2,dec_ttl,output:3,dec_ttl,goto_table:1",
        "table=1,actions=4",
    ]);
    let out = bed.send(&TCP.frame());
    let ttl = |port| out.frame_at(port)[TTL];
    assert_eq!((ttl(2), ttl(3), ttl(4)), (64, 63, 62));
}

#[test]
fn later_tables_see_changes() {
    let bed = Bed::with(&[
        "tcp,actions=set_field:81->tcp_dst,goto_table:1",
        "table=1,tcp,tp_dst=81,actions=3",
    ]);
    assert_eq!(bed.send(&TCP.frame()).ports(), [3]);
}

#[test]
fn a_packet_with_an_invalid_ttl_is_only_sent_to_the_controller() {
    let dying = Tcp { ttl: 1, ..TCP };
    let bed = Bed::with(&["cookie=5,ip,actions=output:2,dec_ttl,output:3,goto_table:1"]);
    let out = bed.send(&dying.frame());
    assert_eq!(out.ports(), [2]);
    assert_eq!(out.reasons(), [InvalidTtl]);
    assert_eq!(out.packet_ins[0].0.cookie, 5);
    let tables: Vec<_> = bed.pipeline.table_stats().collect();
    assert_eq!(tables[1].lookup_count, 0);
}

#[test]
fn an_invalid_ttl_in_one_bucket_does_not_affect_the_others() {
    let mut bed = Bed::new();
    bed.add_group("group_id=1,type=all,bucket=actions=dec_ttl,output:2,bucket=output:3");
    bed.add("ip,actions=group:1,output:4");
    let out = bed.send(&Tcp { ttl: 1, ..TCP }.frame());
    assert_eq!(out.ports(), [3, 4]);
    assert_eq!(out.reasons(), [InvalidTtl]);
}
