//! The elements of lists, and their codec in each version.

use crate::{
    Action, Bucket, BucketCounter, DecodeError, Element, EncodeError, Field, FlowStats, GroupDesc,
    GroupStats, HelloElement, Instruction, MeterBand, MeterConfig, MeterStats, PacketQueue, Port,
    PortStats, QueueProperty, QueueStats, Reader, TableFeatureProperty, TableFeatures, TableStats,
    Version, of10, of13,
};

impl<'a> Element<'a> for Action<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::action::decode(reader),
            Version::Of13 => of13::action::decode(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::action::encode(self, out),
            Version::Of13 => of13::action::encode(self, out),
        }
    }
}

/// A TLV of OpenFlow 1.3; 1.0 has no such lists.
impl<'a> Element<'a> for Field<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::oxm::decode(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::oxm::encode(self, out)
    }
}

impl<'a> Element<'a> for Bucket<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::group::decode_bucket(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::group::encode_bucket(self, out)
    }
}

impl<'a> Element<'a> for HelloElement<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::hello::decode_element(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::hello::encode_element(self, out)
    }
}

impl<'a> Element<'a> for Instruction<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::action::decode_all(reader).map(Self::ApplyActions),
            Version::Of13 => of13::instruction::decode(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::action::encode_instruction(self, out),
            Version::Of13 => of13::instruction::encode(self, out),
        }
    }
}

impl<'a> Element<'a> for MeterBand<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::meter::decode_band(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::meter::encode_band(self, out)
    }
}

impl<'a> Element<'a> for FlowStats<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::multipart::decode_flow_stats(reader),
            Version::Of13 => of13::flow_mod::decode_stats(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::multipart::encode_flow_stats(self, out),
            Version::Of13 => of13::flow_mod::encode_stats(self, out),
        }
    }
}

impl<'a> Element<'a> for TableStats {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::multipart::decode_table_stats(reader),
            Version::Of13 => of13::table::decode_stats(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::multipart::encode_table_stats(self, out),
            Version::Of13 => of13::table::encode_stats(self, out),
        }
    }
}

impl<'a> Element<'a> for PortStats {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::multipart::decode_port_stats(reader),
            Version::Of13 => of13::port::decode_stats(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::multipart::encode_port_stats(self, out),
            Version::Of13 => {
                of13::port::encode_stats(self, out);
                Ok(())
            }
        }
    }
}

impl<'a> Element<'a> for QueueStats {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::multipart::decode_queue_stats(reader),
            Version::Of13 => of13::queue::decode_stats(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::multipart::encode_queue_stats(self, out),
            Version::Of13 => {
                of13::queue::encode_stats(self, out);
                Ok(())
            }
        }
    }
}

impl<'a> Element<'a> for GroupStats<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::group::decode_stats(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::group::encode_stats(self, out)
    }
}

impl<'a> Element<'a> for BucketCounter {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::group::decode_counter(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::group::encode_counter(self, out);
        Ok(())
    }
}

impl<'a> Element<'a> for GroupDesc<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::group::decode_desc(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::group::encode_desc(self, out)
    }
}

impl<'a> Element<'a> for MeterStats<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::meter::decode_stats(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::meter::encode_stats(self, out)
    }
}

impl<'a> Element<'a> for MeterConfig<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::meter::decode_config(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::meter::encode_config(self, out)
    }
}

impl<'a> Element<'a> for Port {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::port::decode(reader),
            Version::Of13 => of13::port::decode(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::port::encode(self, out),
            Version::Of13 => {
                of13::port::encode(self, out);
                Ok(())
            }
        }
    }
}

impl<'a> Element<'a> for PacketQueue<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::queue::decode(reader),
            Version::Of13 => of13::queue::decode(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::queue::encode(self, out),
            Version::Of13 => of13::queue::encode(self, out),
        }
    }
}

impl<'a> Element<'a> for QueueProperty<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::queue::decode_property(reader),
            Version::Of13 => of13::queue::decode_property(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::queue::encode_property(self, out),
            Version::Of13 => of13::queue::encode_property(self, out),
        }
    }
}

impl<'a> Element<'a> for TableFeatures<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::table::decode_features(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::table::encode_features(self, out)
    }
}

impl<'a> Element<'a> for TableFeatureProperty<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::table::decode_property(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::table::encode_property(self, out)
    }
}
