module shop

go 1.26.0

require seckill v0.0.0

replace seckill => ../..
