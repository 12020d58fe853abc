//! The names of the controller's counters in Prometheus.

use urtica_controller::SwitchInfo;
use urtica_wire::PortNo;

/// Returns the metric of a switch's counter: its name, without prefix and `_total`, and its help text.
pub(super) fn switch_metric(field: &'static str) -> (&'static str, &'static str) {
    match field {
        "received" => (
            "switch_received_messages",
            "Messages received from the switch",
        ),
        "packet_ins" => ("switch_packet_ins", "Packet-ins received from the switch"),
        "received_bytes" => ("switch_received_bytes", "Bytes received from the switch"),
        "sent" => ("switch_sent_messages", "Messages sent to the switch"),
        "sent_bytes" => ("switch_sent_bytes", "Bytes sent to the switch"),
        "errors" => ("switch_errors", "Errors that the switch sent"),
        "malformed" => (
            "switch_malformed_messages",
            "Messages that could not be decoded",
        ),
        "unsendable" => (
            "switch_unsendable_messages",
            "Messages of programs that the switch's version cannot express",
        ),
        "unprotected" => (
            "switch_unprotected_entries",
            "Permanent entries of a 1.0 switch that another program's delete may also remove",
        ),
        "truncated" => (
            "switch_truncated_packets",
            "Packets that could not be forwarded, because they were received truncated",
        ),
        "stalls" => (
            "switch_stalls",
            "Times that reading stopped, because the switch did not read its replies",
        ),
        "refused" => (
            "switch_refused_messages",
            "Messages refused, because too many were queued for the switch",
        ),
        "auxiliaries" => (
            "switch_auxiliary_connections",
            "Auxiliary connections that the switch opened",
        ),
        "withheld" => (
            "switch_withheld_messages",
            "Messages of programs that were not sent, since the controller is a secondary at the switch",
        ),
        "role_changes" => (
            "switch_role_changes",
            "Changes of the controller's role at the switch",
        ),
        "ports_refused" => (
            "switch_refused_ports",
            "Ports ignored, because the switch has more than the limit",
        ),
        "answered_in_kernel" => (
            "switch_kernel_answered_packet_ins",
            "Packet-ins that were answered in the kernel",
        ),
        "passed_by_kernel" => (
            "switch_kernel_passed_input",
            "Times that the kernel passed on input that it does not answer",
        ),
        "fell_back" => (
            "switch_kernel_fallbacks",
            "Times that the kernel passed on input, because it could not keep up",
        ),
        "stepped_aside" => (
            "switch_kernel_steps_aside",
            "Times that the kernel half left a busy switch to the program",
        ),
        "through_rings" => ("switch_ring_bytes", "Bytes received through a ring"),
        "ring_full" => (
            "switch_full_rings",
            "Times that the kernel passed on input, because a ring was full",
        ),
        other => (other, "A counter of the controller"),
    }
}

/// Returns the name of a switch: that of its local port, which in Open vSwitch is the bridge's, or its datapath id.
pub(super) fn dp_name(info: &SwitchInfo) -> String {
    let local = info.port(PortNo::LOCAL).map(|port| port.name.to_string());
    local.unwrap_or_else(|| info.datapath_id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_controller::SwitchCounters;

    #[test]
    fn each_counter_of_a_switch_has_a_name() {
        for (field, _) in SwitchCounters::default().iter() {
            let (name, help) = switch_metric(field);
            assert!(name.starts_with("switch_"), "{field} is called {name}");
            assert!(!help.contains("A counter of"), "{field}");
        }
    }
}
