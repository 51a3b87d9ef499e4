package redisstock

import (
	"context"
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua
var scriptFiles embed.FS

var prelude = scriptText("shared/prelude")

// The scripts. Each is called by its digest and sent in full only when the
// server does not know it.
var (
	grabScript         = script("grab")
	reacquireScript    = script("reacquire")
	releaseScript      = script("release")
	settleScript       = script("settle")
	sealScript         = script("seal")
	preheatBeginScript = script("preheat_begin")
	preheatPartScript  = script("preheat_part")
	preheatEndScript   = script("preheat_end")
	gateScript         = script("gate")
	archiveScript      = script("archive")
	auditScript        = script("audit")
	correctScript      = script("correct")
	requeueScript      = script("requeue")
	adoptScript        = script("adopt")
	ackScript          = script("ack")
	depthScript        = script("depth")
	tidyScript         = script("tidy")
	dropScript         = script("drop")
	lendScript         = script("lend")
	borrowScript       = script("borrow")
	repaidScript       = script("repaid")
	editScript         = script("edit")
	witnessScript      = script("witness")
)

// script puts the prelude behind the first line, which names the engine.
func script(name string) *redis.Script {
	engine, rest, _ := strings.Cut(scriptText(name), "\n")
	return redis.NewScript(engine + "\n" + prelude + rest)
}

func scriptText(name string) string {
	text, err := scriptFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the program
	}
	return string(text)
}

// run calls a script that may write; its errors are ErrUnavailable.
func (s *Stock) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (reply, error) {
	return answer(script.Run(ctx, s.config.Client, keys, args...))
}

// read calls a script that only reads; its errors are ErrUnavailable.
func (s *Stock) read(ctx context.Context, script *redis.Script, keys []string, args ...any) (reply, error) {
	return answer(script.RunRO(ctx, s.config.Client, keys, args...))
}

// command is run for a script whose reply begins with a word: what is not "ok"
// is an error.
func (s *Stock) command(ctx context.Context, script *redis.Script, keys []string, args ...any) (reply, error) {
	reply, err := s.run(ctx, script, keys, args...)
	if err != nil {
		return nil, err
	}
	return reply, reply.refusal()
}

func answer(cmd *redis.Cmd) (reply, error) {
	values, err := cmd.Slice()
	if err != nil {
		return nil, unavailable(err)
	}
	return values, nil
}
