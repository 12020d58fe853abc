mod frames;

use super::*;
use proptest::prelude::*;

fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![
        7 => (0..0x8000_u32).prop_map(PortNo),
        1 => (0..0xff00_u32).prop_map(PortNo),
        1 => Just(PortNo::FLOOD),
        1 => any::<u32>().prop_map(PortNo)
    ]
}

proptest! {
    /// A differential test with the general encoder as reference model.
    #[test]
    fn flow_mods_equal_the_general_encoders(
        frame in frames::any_frame(),
        ports in (port(), port()),
        numbers in any::<(u32, u64, u16, u16, u16, u32)>(),
        flags in 0..4_u16,
        table_id in prop_oneof![4 => Just(0), 1 => any::<u8>()],
    ) {
        let (buffer_id, cookie, idle_timeout, hard_timeout, priority, xid) = numbers;
        let match_ = ExactMatch { in_port: ports.0, frame: &frame };
        let (port, buffer_id) = (ports.1, BufferId(buffer_id));
        let flags = FlowModFlags::from_bits_retain(flags);
        let options = EntryOptions { cookie, idle_timeout, hard_timeout, priority, flags };
        let flow_mod = ExactFlowMod { match_, port, buffer_id, options, table_id };
        for version in Version::ALL {
            let (mut fast, mut naive) = (vec![7], vec![7]);
            let fast_result = flow_mod.write(version, xid, &mut fast);
            let naive_result =
                flow_mod.write_general(version, xid, &mut naive);
            prop_assert_eq!(fast_result, naive_result);
            prop_assert_eq!(&fast, &naive);
            // This includes frames that it would not get, since they are written directly.
            let mut any = vec![7];
            if flow_mod.write_any_frame(version, xid, &mut any) {
                prop_assert_eq!(any, naive);
            }
        }
    }

    /// Like the above, for the straight-line packet-out.
    #[test]
    fn packet_outs_equal_the_general_encoders(
        data in prop::collection::vec(any::<u8>(), 0..200),
        ports in (port(), port()),
        numbers in any::<(u32, u32)>(),
    ) {
        let output =
            OutputPacket { buffer_id: BufferId(numbers.0), in_port: ports.0, port: ports.1, data: &data };
        for version in Version::ALL {
            let (mut fast, mut naive) = (vec![7], vec![7]);
            let fast_result = output.write(version, numbers.1, &mut fast);
            let naive_result = output.write_general(version, numbers.1, &mut naive);
            prop_assert_eq!(fast_result, naive_result);
            prop_assert_eq!(fast, naive);
        }
    }
}
