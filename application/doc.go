// Package application holds the use cases: what a shop can ask of the engine.
// They orchestrate the ports of package domain and know no technology.
//
// Another module of the same process calls Engine's methods directly; the HTTP
// adapter and the workers do the same.
package application
