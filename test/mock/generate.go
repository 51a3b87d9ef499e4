// Package mock holds generated mocks of the ports, for tests in which the order
// of calls under failure is the point. Elsewhere tests use real adapters.
package mock

//go:generate go tool mockgen -source=../../domain/stock.go -destination=stock.go -package=mock
//go:generate go tool mockgen -source=../../domain/order.go -destination=order.go -package=mock
//go:generate go tool mockgen -source=../../domain/queue.go -destination=queue.go -package=mock
//go:generate go tool mockgen -source=../../domain/lock.go -destination=lock.go -package=mock
