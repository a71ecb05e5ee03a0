#![no_main]

tower_algenta_fuzz::target!(receipt_mapping);
