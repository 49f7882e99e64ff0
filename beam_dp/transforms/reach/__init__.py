"""The private search for a bound on partitions per person, before people are bounded."""
