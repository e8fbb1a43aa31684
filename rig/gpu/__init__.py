"""Serving as it looks on GPUs: an engine front that does each step's work through libcuda and NCCL.

The text comes from llama.cpp; the front keeps the device in step with it and fails as vLLM fails.
"""
