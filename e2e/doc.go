// Package e2e drives the built binary from outside, as its users do: unmodified SDKs, the page in
// Chromium, a fault injector between Kvasir and its workers, recorded bytes of real engines, and
// real vLLM (build tag real). The cache's store in Milvus is driven as a package, against a real
// Milvus Lite. It is a module of its own, so that what the tests need is no dependency of Kvasir.
//
// The binary is ../bin/kvasir (make build) or the one that KVASIR_BIN names.
package e2e
