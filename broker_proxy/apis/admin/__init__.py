"""APIs about the cluster, topics, configs, ACLs, quotas and tokens."""
