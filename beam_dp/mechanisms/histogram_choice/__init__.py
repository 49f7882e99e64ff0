"""A noisy histogram of people chooses: a clip, or the bound on partitions per person."""
