#![no_main]

tower_algenta_fuzz::target!(schema_scrub);
