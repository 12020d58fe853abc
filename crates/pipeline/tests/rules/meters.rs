//! Meters (1.3.5 sections 5.7 and 7.3.4.4).

use crate::support::{Bed, TCP, Tcp, any_frame};
use std::time::Duration;
use urtica_pipeline::{MAX_BANDS, MeterVerdict};
use urtica_wire::MeterModCommand::{Add, Delete, Modify, Other};
use urtica_wire::{ErrorCode, METER_ALL, MeterBand, MeterFlags, MeterMod};

#[track_caller]
fn bed_of(meter: &str) -> Bed {
    let mut bed = Bed::new();
    bed.add_meter(&format!("meter=1,{meter}"));
    bed
}

/// Sends packets of `bytes` at an even rate for some seconds; returns the numbers passed, remarked, and dropped.
fn offer(bed: &Bed, bytes: usize, per_second: u64, seconds: u64) -> [u64; 3] {
    let meter = bed.pipeline.meters().get(1).expect("the meter");
    let mut counts = [0; 3];
    for packet in 0..per_second * seconds {
        let at = Duration::from_nanos(packet * 1_000_000_000 / per_second);
        counts[match meter.measure(bytes, bed.now + at) {
            MeterVerdict::Pass => 0,
            MeterVerdict::Remark(_) => 1,
            MeterVerdict::Drop => 2,
        }] += 1;
    }
    counts
}

#[test]
fn half_of_twice_the_rate_passes() {
    for rate in [100, 1000, 10_000] {
        let bed = bed_of(&format!("pktps,band=type=drop,rate={rate}"));
        let [passed, _, dropped] = offer(&bed, 1500, 2 * rate, 30);
        // The burst, one second of the rate, passes at the start.
        assert!((31 * rate).abs_diff(passed) <= 1, "{passed} at {rate}/s");
        assert_eq!(passed + dropped, 60 * rate);
    }
}

#[test]
fn rates_in_kilobits_count_the_bytes_of_frames() {
    let bed = bed_of("kbps,band=type=drop,rate=1000");
    let [passed, ..] = offer(&bed, 1500, 175, 30);
    let kilobits = passed * 1500 * 8 / 1000;
    assert!(kilobits.abs_diff(31_000) <= 24, "{kilobits}");
}

#[test]
fn the_rate_is_kept_at_irregular_arrivals() {
    let bed = bed_of("kbps,burst,band=type=drop,rate=7,burst_size=20");
    let meter = bed.pipeline.meters().get(1).expect("the meter");
    let mut bits = 0;
    for packet in 0..1_000_000 {
        let at = Duration::from_nanos(packet * 99_991 + packet % 7 * 13);
        if meter.measure(64, bed.now + at) == MeterVerdict::Pass {
            bits += 64 * 8;
        }
    }
    let expected: u64 = 20_000 + 7 * 99_991;
    assert!(expected.abs_diff(bits) < 2 * 64 * 8, "{bits} of {expected}");
}

#[test]
fn a_burst_passes_at_once_and_not_more() {
    let bed = bed_of("pktps,burst,band=type=drop,rate=10,burst_size=25");
    let meter = bed.pipeline.meters().get(1).expect("the meter");
    let verdicts = (0..30).map(|_| meter.measure(100, bed.now));
    let passed = verdicts.filter(|&verdict| verdict == MeterVerdict::Pass);
    assert_eq!(passed.count(), 25);
    let later = bed.now + Duration::from_millis(100);
    assert_eq!(meter.measure(100, later), MeterVerdict::Pass);
    assert_eq!(meter.measure(100, later), MeterVerdict::Drop);
}

#[test]
fn a_frame_larger_than_the_burst_passes_in_its_time() {
    let bed = bed_of("kbps,burst,band=type=drop,rate=12,burst_size=1");
    let [passed, ..] = offer(&bed, 1500, 10, 30);
    assert!((29..=31).contains(&passed), "one frame a second: {passed}");
}

#[test]
fn decreasing_time_adds_no_tokens() {
    let bed = bed_of("pktps,burst,band=type=drop,rate=1,burst_size=1");
    let meter = bed.pipeline.meters().get(1).expect("the meter");
    assert_eq!(meter.measure(1, bed.now), MeterVerdict::Pass);
    assert_eq!(meter.measure(1, Duration::ZERO), MeterVerdict::Drop);
    assert_eq!(meter.measure(1, bed.now), MeterVerdict::Drop);
}

#[test]
fn of_several_exceeded_bands_the_one_with_the_highest_rate_acts() {
    let bed = bed_of("pktps,bands=type=drop,rate=200,type=dscp_remark,rate=100,prec_level=1");
    let [passed, remarked, dropped] = offer(&bed, 100, 400, 30);
    assert!(passed.abs_diff(3100) <= 100, "{passed}");
    assert!(remarked.abs_diff(3100) <= 100, "{remarked}");
    assert!(dropped.abs_diff(5800) <= 100, "{dropped}");
}

#[test]
fn meters_and_bands_count() {
    let mut bed = bed_of("pktps,burst,band=type=drop,rate=1,burst_size=2");
    bed.add("in_port=1,actions=meter:1,output:2");
    bed.add("in_port=2,actions=meter:1,output:3");
    for _ in 0..3 {
        bed.send(&any_frame());
    }
    bed.wait(1500);
    let stats = &bed.pipeline.meter_stats(1, bed.now).expect("the meter")[0];
    assert_eq!((stats.flow_count, stats.duration_sec), (2, 1));
    assert_eq!((stats.packet_in_count, stats.byte_in_count), (3, 180));
    let bands: Vec<_> = stats.bands.iter().collect();
    assert_eq!((bands[0].packet_count, bands[0].byte_count), (1, 60));
    let unknown = bed.pipeline.meter_stats(2, bed.now);
    assert_eq!(unknown, Err(ErrorCode::MeterModFailedUnknownMeter));
}

#[test]
fn all_meters_with_all_bands_fit_into_one_request() {
    let mut bed = bed_of("pktps,band=type=drop,rate=1");
    let drop_at = |rate| MeterBand::Drop {
        rate: rate as u32,
        burst_size: 0,
    };
    let meter_mod = MeterMod {
        command: Add,
        flags: MeterFlags::PKTPS,
        meter_id: 7,
        bands: (1..=MAX_BANDS).map(drop_at).collect::<Vec<_>>().into(),
    };
    let (now, removed) = (bed.now, &mut bed.removed);
    assert_eq!(bed.pipeline.meter_mod(&meter_mod, now, removed), Ok(()));
    let stats = bed.pipeline.meter_stats(METER_ALL, now).expect("two");
    let found: Vec<_> = stats
        .iter()
        .map(|meter| (meter.meter_id, meter.bands.len()))
        .collect();
    assert_eq!(found, [(1, 1), (7, MAX_BANDS)]);
}

#[test]
fn a_dropped_packet_is_not_processed_further() {
    let mut bed = bed_of("pktps,burst,band=type=drop,rate=1,burst_size=1");
    bed.add("actions=write_actions(output:3),goto_table:1");
    bed.add("table=1,actions=meter:1,output:2");
    assert_eq!(bed.send(&any_frame()).ports(), [2, 3]);
    assert!(bed.send(&any_frame()).is_dropped());
}

/// Returns the DSCP of a packet that had `dscp` before a band that raises by `levels`.
fn remarked(dscp: u8, levels: u8) -> u8 {
    let band = format!("pktps,burst,band=type=dscp_remark,rate=1,burst_size=0,prec_level={levels}");
    let mut bed = bed_of(&band);
    bed.add("actions=meter:1,output:2");
    let frame = Tcp { dscp, ..TCP }.frame();
    bed.send(&frame);
    bed.send(&frame).frame_at(2)[15] >> 2
}

#[test]
fn a_remark_raises_the_drop_precedence_of_assured_forwarding() {
    let (af21, af22, af23) = (18, 20, 22);
    assert_eq!(remarked(af21, 1), af22);
    assert_eq!(remarked(af21, 2), af23);
    assert_eq!(remarked(af22, 200), af23);
    assert_eq!(remarked(af23, 1), af23);
}

#[test]
fn a_remark_ignores_classes_without_drop_precedence() {
    for dscp in [0, 8, 16, 19, 42, 46, 48, 63] {
        assert_eq!(remarked(dscp, 1), dscp);
    }
}

#[test]
fn a_meter_is_added_once_and_modified_or_deleted_if_present() {
    let mut bed = bed_of("kbps,band=type=drop,rate=1");
    let text = "meter=1,pktps,band=type=drop,rate=2";
    assert_eq!(
        bed.try_meter(Add, text),
        Err(ErrorCode::MeterModFailedMeterExists)
    );
    assert_eq!(bed.try_meter(Modify, text), Ok(()));
    let config = &bed.pipeline.meter_configs(1).expect("the meter")[0];
    assert_eq!(config.flags, MeterFlags::PKTPS);
    let unknown = "meter=2,pktps,band=type=drop,rate=2";
    assert_eq!(
        bed.try_meter(Modify, unknown),
        Err(ErrorCode::MeterModFailedUnknownMeter)
    );
    assert_eq!(bed.try_meter(Delete, "meter=2"), Ok(()));
}

#[test]
fn entries_are_removed_with_their_meter() {
    let mut bed = bed_of("kbps,band=type=drop,rate=1");
    bed.add_meter("meter=2,kbps,band=type=drop,rate=1");
    bed.add("in_port=1,send_flow_rem,actions=meter:1,output:2");
    bed.add("in_port=2,actions=meter:2,output:2");
    bed.add("in_port=3,actions=2");
    assert_eq!(bed.try_meter(Delete, "meter=1"), Ok(()));
    assert_eq!((bed.dump().len(), bed.removed.len()), (2, 1));
    assert_eq!(bed.try_meter(Delete, ""), Ok(()));
    assert_eq!(bed.dump(), ["0 packets: in_port=3 actions=output:2"]);
}

#[test]
fn each_error_of_a_meter_has_its_code() {
    let drop_at = |rate| MeterBand::Drop {
        rate,
        burst_size: 0,
    };
    let meter = |bands: Vec<MeterBand<'static>>| MeterMod {
        command: Add,
        flags: MeterFlags::KBPS,
        meter_id: 1,
        bands: bands.into(),
    };
    let good = || meter(vec![drop_at(1)]);
    let remark = MeterBand::DscpRemark {
        rate: 1,
        burst_size: 0,
        prec_level: 0,
    };
    let experimenter = MeterBand::Experimenter {
        rate: 1,
        burst_size: 0,
        experimenter: 1,
        data: &[],
    };
    let cases = [
        (
            MeterMod {
                meter_id: 0,
                ..good()
            },
            ErrorCode::MeterModFailedInvalidMeter,
        ),
        (
            MeterMod {
                meter_id: 0xffff_0001,
                ..good()
            },
            ErrorCode::MeterModFailedInvalidMeter,
        ),
        (
            MeterMod {
                command: Other(7),
                ..good()
            },
            ErrorCode::MeterModFailedBadCommand,
        ),
        (
            MeterMod {
                flags: MeterFlags::KBPS | MeterFlags::PKTPS,
                ..good()
            },
            ErrorCode::MeterModFailedBadFlags,
        ),
        (
            MeterMod {
                flags: MeterFlags::from_bits_retain(1 << 4),
                ..good()
            },
            ErrorCode::MeterModFailedBadFlags,
        ),
        (meter(vec![drop_at(0)]), ErrorCode::MeterModFailedBadRate),
        (meter(vec![remark]), ErrorCode::MeterModFailedBadBandValue),
        (meter(vec![experimenter]), ErrorCode::MeterModFailedBadBand),
        (
            meter(vec![drop_at(1); MAX_BANDS + 1]),
            ErrorCode::MeterModFailedOutOfBands,
        ),
    ];
    for (meter_mod, code) in cases {
        let mut bed = Bed::new();
        let refused = bed
            .pipeline
            .meter_mod(&meter_mod, bed.now, &mut bed.removed);
        assert_eq!(refused, Err(code), "{meter_mod:?}");
        assert_eq!(bed.pipeline.meters().iter().count(), 0);
    }
}

#[test]
fn the_number_of_meters_is_limited() {
    let mut bed = Bed::new();
    for id in 1..=4 {
        bed.add_meter(&format!("meter={id},kbps,band=type=drop,rate=1"));
    }
    let code = ErrorCode::MeterModFailedOutOfMeters;
    assert_eq!(
        bed.try_meter(Add, "meter=5,kbps,band=type=drop,rate=1"),
        Err(code)
    );
}
