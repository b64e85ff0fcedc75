"""The store over gRPC: translate, call one use case, translate back."""
