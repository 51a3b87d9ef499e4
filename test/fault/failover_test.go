package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/bootstrap"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/history"
)

// The way between master and replica breaks, the master dies, and the replica that
// lacks the last moments is promoted. The engine sees that it is another server,
// loads its sales from the ledger, and answers for what is gone.
// covers N7
func TestReplicaWithALostTailIsPromoted(t *testing.T) {
	for _, ledger := range []string{"mariadb", "postgres"} {
		t.Run(ledger, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{ledger: ledger, own: true})
			between := harness.NewProxy(t, r.redis.Addr)
			replica := harness.RedisReplica(t, between.Addr)
			admin := replica.Client(t)
			r.eventually("a replica that keeps up", func() error { return linked(t.Context(), admin) })
			crowd := r.storm(r.sell(3000, 1), "c", 2500, 30, 1, 20*time.Millisecond)
			crowd.reach(300)
			between.Cut()
			crowd.reach(900)
			r.toSQL.Cut() // what is accepted now is in the master alone
			crowd.reach(1200)
			r.redis.Kill()
			r.must(admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
			r.toSQL.Mend()
			r.toRedis.Redirect(replica.Addr)
			v := r.settle(crowd)
			t.Logf("%+v", v)
			if v.Rejected == 0 || v.Confirmed < 2000 {
				t.Errorf("%+v: nothing was lost, or the sale did not go on", v)
			}
		})
	}
}

// linked says whether a replica follows its master.
func linked(ctx context.Context, replica *redis.Client) error {
	info, err := replica.Info(ctx, "replication").Result()
	if err == nil && !strings.Contains(info, "master_link_status:up") {
		err = errors.New("not linked")
	}
	return err
}

// An operator has Sentinel fail over, in the middle of a sale, there and back.
// covers N7 S10
func TestManualSentinelFailover(t *testing.T) {
	t.Parallel()
	master := harness.Redis(t)
	replica := harness.RedisReplica(t, master.Addr)
	sentinel := harness.Sentinel(t, "shop", master)
	watcher := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr})
	t.Cleanup(func() { _ = watcher.Close() })
	r := newRig(t, setup{ledger: "mariadb", at: func(c *bootstrap.Config) {
		c.Redis.Addrs, c.Redis.Master = []string{sentinel.Addr}, "shop"
	}})
	r.eventually("a replica that Sentinel knows", func() error {
		replicas, err := watcher.Replicas(t.Context(), "shop").Result()
		if err == nil && len(replicas) == 0 {
			err = errors.New("none")
		}
		return errors.Join(err, linked(t.Context(), replica.Client(t)))
	})
	crowd := r.storm(r.sell(3000, 1), "c", 2500, 30, 1, 20*time.Millisecond)
	for n, to := range []*harness.RedisServer{replica, master} {
		crowd.reach(300 + 900*n)
		r.eventually("a failover", func() error { return watcher.Failover(t.Context(), "shop").Err() })
		r.eventually("another master", func() error {
			addr, err := watcher.GetMasterAddrByName(t.Context(), "shop").Result()
			if err == nil && net.JoinHostPort(addr[0], addr[1]) != to.Addr {
				err = fmt.Errorf("master is %v", addr)
			}
			return err
		})
		// An operator waits until the shop sells again, and so until it has been loaded
		// from the ledger. See the README for what a second failover before that may do.
		r.eventually("a rebuild", func() error {
			level, err := r.stock.Level(t.Context(), r.sales[0].SaleID)
			if err == nil && level.Epoch < int64(n)+2 {
				err = fmt.Errorf("epoch %d", level.Epoch)
			}
			return err
		})
	}
	v := r.settle(crowd)
	t.Logf("%d refusals, %+v", r.history.Count(history.Grab, history.Unknown), v)
	if v.Confirmed < 2000 {
		t.Errorf("%+v", v)
	}
}

// The node that has the sale goes down and comes back: the cluster is not whole
// meanwhile.
// covers N6 N7 S10
func TestClusterIsDownForAWhile(t *testing.T) {
	t.Parallel()
	servers := harness.RedisClusterServers(t)
	r := newRig(t, setup{ledger: "postgres", at: onCluster(servers)})
	sale := r.sell(3000, 1)
	crowd := r.storm(sale, "c", 2500, 30, 1, 20*time.Millisecond)
	crowd.reach(300)
	node, _ := r.homeOf(servers, sale)
	servers[node].Kill()
	time.Sleep(2 * harmTime)
	servers[node].Restart()
	v := r.settle(crowd)
	t.Logf("%d refusals, %+v", r.history.Count(history.Grab, history.Unknown), v)
	if v.Confirmed < 2000 {
		t.Errorf("%+v", v)
	}
}

// The sale's slot moves to another node, in the middle of the sale: MOVED, ASK and
// TRYAGAIN for a while, and nothing is lost.
// covers S10 N6
func TestSlotMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	servers := harness.RedisClusterServers(t)
	r := newRig(t, setup{ledger: "mariadb", at: onCluster(servers)})
	sale := r.sell(3000, 1)
	crowd := r.storm(sale, "c", 2500, 30, 1, 20*time.Millisecond)
	crowd.reach(300)
	from, slot := r.homeOf(servers, sale)
	to := (from + 1) % len(servers)
	source, target := servers[from].Client(t), servers[to].Client(t)
	sourceID, targetID := source.ClusterMyID(t.Context()).Val(), target.ClusterMyID(t.Context()).Val()
	r.must(target.Do(t.Context(), "cluster", "setslot", slot, "importing", sourceID).Err())
	r.must(source.Do(t.Context(), "cluster", "setslot", slot, "migrating", targetID).Err())
	host, port, err := net.SplitHostPort(servers[to].Addr)
	r.must(err)
	for {
		keys, err := source.ClusterGetKeysInSlot(t.Context(), slot, 1).Result()
		r.must(err)
		if len(keys) == 0 {
			break
		}
		r.must(source.Do(t.Context(), "migrate", host, port, keys[0], 0, 5000).Err())
		time.Sleep(harmTime / 10) // with some of its keys here and some there
	}
	for _, node := range []*redis.Client{target, source, servers[(from+2)%len(servers)].Client(t)} {
		r.must(node.Do(t.Context(), "cluster", "setslot", slot, "node", targetID).Err())
	}
	v := r.settle(crowd)
	t.Logf("%d refusals, %+v", r.history.Count(history.Grab, history.Unknown), v)
	if v.Confirmed != 2500 {
		t.Errorf("%+v", v)
	}
}

func onCluster(servers []*harness.RedisServer) func(*bootstrap.Config) {
	return func(c *bootstrap.Config) {
		c.Redis.Addrs = nil
		for _, server := range servers {
			c.Redis.Addrs = append(c.Redis.Addrs, server.Addr)
		}
	}
}

// homeOf finds the node that has a sale, and the sale's slot.
func (r *rig) homeOf(servers []*harness.RedisServer, sale history.Sale) (node, slot int) {
	r.t.Helper()
	for n, server := range servers {
		client := server.Client(r.t)
		keys := client.Keys(r.t.Context(), r.config.Redis.Prefix+":{*}:sale:"+sale.String()).Val()
		if len(keys) == 1 {
			return n, int(client.ClusterKeySlot(r.t.Context(), keys[0]).Val())
		}
	}
	r.t.Fatal(domain.ErrNotFound)
	return 0, 0
}
