package redisstock

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

var policyLine = regexp.MustCompile(`(?m)^maxmemory_policy:(\S+)`)

// CheckKeeps says whether a server that runs out of memory could drop keys of the
// stock, which have no time to live: nil, or an error that names the setting. Of a
// cluster it asks every master. A server that does not tell is not found fault
// with.
func CheckKeeps(ctx context.Context, client redis.UniversalClient) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return checkPolicy(ctx, client)
	}
	var mu sync.Mutex
	var unsafe error
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		if err := checkPolicy(ctx, node); err != nil {
			mu.Lock()
			unsafe = err
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return unavailable(err)
	}
	return unsafe
}

func checkPolicy(ctx context.Context, client redis.Cmdable) error {
	told := client.Info(ctx, "memory").Val() // "" when it does not tell
	if found := policyLine.FindStringSubmatch(told); found != nil && strings.HasPrefix(found[1], "allkeys-") {
		return fmt.Errorf("maxmemory-policy is %s: a full Redis drops stock and holds, set it to noeviction", found[1])
	}
	return nil
}
