"""A sample fleet of brokers with damaged disks, and the demo that audits it."""
